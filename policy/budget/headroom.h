// SPDX-License-Identifier: Apache-2.0
// Bytes of a limit to keep free for what the driver takes by itself, where nobody has said how many.
#pragma once

#include <cstdint>

namespace cuslice {

// An H200's driver hands small allocations out of chunks of 2 MiB and rounds larger ones up to that (docs/results/),
// so it holds more than was asked of it.
inline constexpr uint64_t kMinHeadroom = 2 << 20;
// The share of what the driver has taken so far that it may yet take unasked (lazily loaded kernels, local memory). In
// PyTorch's first training step an H200's takes 90 MiB at one launch, beside the 528 that it has.
inline constexpr uint64_t kHeadroomShare = 5;

// `taken`: bytes that the driver has taken so far, for contexts and modules.
constexpr uint64_t derived_headroom(uint64_t taken) {
    return taken / kHeadroomShare > kMinHeadroom ? taken / kHeadroomShare : kMinHeadroom;
}

}  // namespace cuslice
