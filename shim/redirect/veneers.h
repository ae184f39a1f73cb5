// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "shim/redirect/plan.h"
#include "shim/redirect/symbol_table.h"

namespace cuslice {

// Pages near a program with a jump to each target, as a short jump doesn't reach a library. They stay, and so have the
// names of functions that a runtime lacks.
class Veneers {
  public:
    // False if there is no room within a short jump's reach, or the kernel gives no memory that can be executed.
    bool make(const AddressRange& program, std::span<const Redirection> redirections);
    // The place from which the redirection of this number goes on.
    uintptr_t at(size_t index) const { return begin_ + index * kBytes; }
    // For pages that nothing leads to.
    void remove();

    static constexpr size_t kBytes = 32;

  private:
    bool map_near(const AddressRange& program, size_t bytes);
    bool map_at(uintptr_t address, size_t bytes);

    uintptr_t begin_ = 0;
    size_t bytes_ = 0;
};

}  // namespace cuslice
