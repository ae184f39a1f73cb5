// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

// A live allocation, as it is known. `context`, `gpu` and `kind` are the caller's numbers.
struct Allocation {
    static constexpr uint64_t kUnit = 512;

    uint64_t address = 0;  // 0: none
    uint64_t bytes = 0;    // whole units of kUnit; below 2^44
    uint16_t context = 0;  // whose end frees it; 0: none
    uint8_t gpu = 0;       // below 64
    uint8_t kind = 0;      // below 32
};

}  // namespace cuslice
