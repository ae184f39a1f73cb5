// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

/// A GPU's memory as the program is shown it, in bytes.
struct MemoryView {
    uint64_t free = 0;
    uint64_t total = 0;
};

/// The slice, given the bytes that the driver says are physically free. Free is what an allocation could really get:
/// the limit less headroom less everything charged, and never more than is physically free. Reads again what may have
/// become smaller. Thread-safe.
MemoryView memory_view(VirtualGpu& gpu, uint64_t physical_free);

/// VirtualGpu::limit(), in bytes, for whoever asks before the first context: what the group has by then is in the
/// ledger. Thread-safe.
uint64_t limit_to_come(VirtualGpu& gpu);

}  // namespace cuslice
