// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual memory management: reserved addresses, and mappings of physical memory and of multicast objects at them.

#include "fake/driver/extents.h"

namespace cuslice::fake {

CUresult reserve_addresses(Address& out, size_t size, size_t alignment);
CUresult free_addresses(Address address, size_t size);
/// One reference less to physical memory or to a multicast object.
CUresult release_physical(CUmemGenericAllocationHandle handle);
CUresult map_physical(Address address, size_t size, size_t offset, CUmemGenericAllocationHandle handle);
CUresult unmap_physical(Address address, size_t size);
CUresult set_mapped_access(Address address, size_t size, const CUmemAccessDesc* access, size_t count);
CUresult get_mapped_access(Address address, const CUmemLocation& location, unsigned long long& flags);
/// One more reference to what is mapped at an address.
CUresult retain_physical(Address address, CUmemGenericAllocationHandle& out);

/// The bytes under mapped addresses that this GPU may access as asked.
CUresult resolve_mapped(Address address, size_t size, Access access, Extents& extents, int from_gpu);
/// The mapping around an address: its base, size and GPU; false if nothing is mapped there.
bool find_mapping(Address address, Address& base, size_t& size, Gpu*& gpu);

}  // namespace cuslice::fake
