// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that an address has been resolved to, and copies and fills of them when their turn has come.

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "fake/driver/gpu.h"

namespace cuslice::fake {

/// Some bytes that can be reached at once: in a GPU's memory, or at a host address.
struct Extent {
    MemorySpace* space = nullptr;  // null: host memory
    Address at = 0;
    size_t size = 0;
    Gpu* gpu = nullptr;
    std::shared_ptr<const std::atomic<bool>> mapped{};  // of mapped memory: false once that has been unmapped
};
using Extents = std::vector<Extent>;

/// True if some of it is the host's, as managed memory is.
bool on_host(const Extents& extents);

enum class Access { Read, Write };

/// Copies between resolved ranges of the same total size. CUDA_ERROR_ILLEGAL_ADDRESS if some of it has been unmapped
/// since it was resolved, CUDA_ERROR_OUT_OF_MEMORY if the host has no room for the contents: nothing is copied then.
CUresult copy_extents(const Extents& to, const Extents& from);
/// Repeats a pattern of 4 bytes over resolved ranges; the same errors.
CUresult fill_extents(const Extents& extents, uint32_t pattern);

}  // namespace cuslice::fake
