// SPDX-License-Identifier: Apache-2.0
#pragma once
// From an address to bytes: every pointer from the program goes through here before anything is touched.

#include "fake/driver/extents.h"

namespace cuslice::fake {

/// The GPU that reaches for memory in the calling thread: the current context's. -1: there is none.
int accessing_gpu();

/// Bytes [address, address + size) as device code could reach them: in one live block, in mapped virtual memory, or in
/// host memory that the driver knows. CUDA_ERROR_INVALID_VALUE if any of them is not. `from_gpu` is the one that
/// reaches for them: mapped memory is open to those alone that cuMemSetAccess names, whatever peers are enabled.
CUresult resolve_device(Address address, size_t size, Access access, Extents& extents, int from_gpu = accessing_gpu());
/// The same for a host pointer: any address that isn't a GPU's. Pageable memory can't be checked further.
CUresult resolve_host(const void* pointer, size_t size, Extents& extents);
/// The same for a unified address: a known range is what it is, anything else host memory.
CUresult resolve_any(Address address, size_t size, Access access, Extents& extents, int from_gpu = accessing_gpu());

}  // namespace cuslice::fake
