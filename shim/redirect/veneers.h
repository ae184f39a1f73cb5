// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "shim/redirect/plan.h"
#include "shim/redirect/symbol_table.h"

namespace cuslice {

struct LateTable;

// The data of a veneer. Its code, near its module, has three parts. The first goes on to where the entry leads: to the
// target, or to one of the others. The second takes the name into the first argument's register, for a target that
// wants it. The third takes this into a register that calls leave free, and goes on to the table's stub.
struct Veneer {
    const void* entry;  // atomically
    const char* name;   // of the function
    const void* target;
    LateTable* table;
    const unsigned char* code;

#if defined(__x86_64__)
    static constexpr size_t kCodeBytes = 32, kWithName = 6, kUnbound = 19;
#else
    static constexpr size_t kCodeBytes = 48, kWithName = 12, kUnbound = 24;
#endif
    const void* with_name() const { return code + kWithName; }
    const void* unbound() const { return code + kUnbound; }
};

// A module's veneers, which are bound to their targets at the first call, as its shared runtime can't be loaded when
// the module is.
struct LateTable {
    const void* stub;  // called at the first call of each: late_binding.h
    const char* module;
    const char* runtime;  // the path of the shared runtime that has all functions
    int major;            // of its version
    bool told;            // that it couldn't be loaded; atomically
    size_t count;

    std::span<Veneer> veneers() { return {reinterpret_cast<Veneer*>(this + 1), count}; }
};

// How a module is bound late. The texts are copied.
struct LateBinding {
    const void* stub;
    const char* module;
    const char* runtime;
    int major;
};

// Pages near a module with a jump to each target, as a short jump doesn't reach another library, and behind them pages
// with what the jumps go by: tables and names. They stay until they are removed.
class Veneers {
  public:
    // `late`: null for redirections that have their targets. False if there is no room within a short jump's reach, or
    // the kernel gives no memory that can be executed.
    bool make(const AddressRange& module, std::span<const Redirection> redirections, const LateBinding* late = nullptr);
    // The place from which the redirection of this number goes on.
    uintptr_t at(size_t index) const;
    // For pages that nothing leads to.
    void remove();

  private:
    bool map_near(const AddressRange& module, size_t bytes);
    bool map_at(uintptr_t address, size_t bytes);
    void write(std::span<const Redirection> redirections, const LateBinding* late);
    const char* copy(const char* text);

    uintptr_t begin_ = 0;
    size_t code_bytes_ = 0, bytes_ = 0;
    char* free_text_ = nullptr;
};

}  // namespace cuslice
