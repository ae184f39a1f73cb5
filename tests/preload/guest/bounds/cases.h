// SPDX-License-Identifier: Apache-2.0
// Every way to copy or fill a range of device memory.
#pragma once

#include <span>

#include "tests/preload/guest/bounds/ends.h"

namespace bounds {

/// Effect of a case on the range: writes the other end's bytes or kFilled to it, or reads it into the other end.
enum class Does { write, fill, read_to_host, read_to_device, read_to_array };
constexpr unsigned char kFilled = 0x5a;

struct Case {
    const char *symbol, *variant;
    Does does;
    unsigned unit;  // bytes; ranges are multiples
    CUresult (*call)(CUdeviceptr at, size_t bytes);
};
std::span<const Case> cases();

}  // namespace bounds
