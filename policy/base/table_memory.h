// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace cuslice {

// Memory for tables that grow by doubling: zeroed blocks of a power of two of bytes, from the kernel, never from the
// host's malloc. Larger blocks come out of huge pages where the kernel has them: a look-up in a big table is one miss
// of the cache, and without huge pages one of the TLB before it, which costs more. Blocks given back are handed out
// again. Thread-safe.
void* take_table_memory(size_t bytes);  // null if the kernel gives none
void give_back_table_memory(void* memory, size_t bytes);

}  // namespace cuslice
