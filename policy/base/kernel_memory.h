// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>

namespace cuslice {

// Zeroed pages for our records, from the kernel, never from the host's malloc; errno is kept. Null if the kernel gives
// none. Thread-safe.
void* map_kernel_memory(size_t bytes);

// Called where the kernel gives none, with the bytes and its errno. Under any lock, so that it takes none, and with
// cancellation disabled. Null: nobody is told.
inline constinit std::atomic<void (*)(size_t bytes, int error)> report_no_kernel_memory{nullptr};

}  // namespace cuslice
