// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuslice {

// The addresses at which a loaded module lies: from its first segment to its last.
struct ModuleRange {
    uintptr_t begin = 0;
    uintptr_t size = 0;  // bytes; 0: not known

    bool has(const void* address) const { return reinterpret_cast<uintptr_t>(address) - begin < size; }
};

}  // namespace cuslice
