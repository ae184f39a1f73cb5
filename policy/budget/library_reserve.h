// SPDX-License-Identifier: Apache-2.0
// The part of a slice that a framework's own memory pool is to leave to the libraries beside it: the handles and
// workspaces of cuBLAS and cuDNN, and the kernels that they load. They take it from the driver, not out of the pool.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cuslice {

// On an H200 cuBLAS takes 68 MiB with its handle and cuDNN 10 (docs/results/); the rest is for kernels that are loaded
// and convolutions' workspaces. With a fifth of the largest context beside it (derived_headroom), it stays
// below 320 MiB, and below the 225 MiB that TensorFlow keeps of a small GPU.
inline constexpr uint64_t kMaxLibraryReserve = 192ull << 20;
// A small slice is shared with the pool: never more than this part of it.
inline constexpr uint64_t kLibraryReserveShare = 4;

// `left`: bytes of the slice that are left once its context and its headroom are taken. Bytes, in whole MiB, since
// TensorFlow's variable counts in MiB. `left` less this never falls by more than that rounding when `left` rises.
constexpr uint64_t library_reserve(uint64_t left) {
    constexpr uint64_t kMiB = 1 << 20;
    return std::min(left / kLibraryReserveShare, kMaxLibraryReserve) / kMiB * kMiB;
}

}  // namespace cuslice
