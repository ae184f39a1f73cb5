// SPDX-License-Identifier: Apache-2.0
#pragma once
// Multicast objects: a range that a team of GPUs shares. Each of the team binds memory of its own to it, which lives at
// least as long as it is bound. The object itself takes no memory: what is bound to it is what there is.

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "fake/driver/gpu.h"

namespace cuslice::fake {

struct Multicast {
    CUmulticastObjectProp prop{};
    std::vector<Gpu*> team;
    unsigned handles = 1;  // references that the program holds
    unsigned mappings = 0;
    struct Binding {
        size_t size = 0;
        CUmemGenericAllocationHandle memory = 0;
    };
    std::map<std::pair<int, size_t>, Binding> bindings;  // by ordinal and offset
};

CUresult create_multicast(CUmemGenericAllocationHandle& out, const CUmulticastObjectProp& prop);
CUresult add_to_team(CUmemGenericAllocationHandle handle, CUdevice device);
/// Binds a part of physical memory; waits until the team is complete.
CUresult bind_memory(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
                     size_t memory_offset, size_t size);
/// The same of memory that is mapped at an address.
CUresult bind_address(CUmemGenericAllocationHandle handle, size_t offset, Address address, size_t size);
CUresult unbind_memory(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size);

// For mappings of multicast objects. The lock of mappings.h is held.

bool is_multicast(CUmemGenericAllocationHandle handle);
/// 0 if the handle has been released.
size_t multicast_size(CUmemGenericAllocationHandle handle);
Gpu* multicast_gpu(CUmemGenericAllocationHandle handle);
/// Lets go of the lock until all GPUs have been added, as the driver documents it, or the object is gone.
void await_team(CUmemGenericAllocationHandle handle, std::unique_lock<std::shared_mutex>& hold);
void multicast_mapped(CUmemGenericAllocationHandle handle);
void multicast_unmapped(CUmemGenericAllocationHandle handle);
CUresult retain_multicast(CUmemGenericAllocationHandle handle);
CUresult release_multicast(CUmemGenericAllocationHandle handle);

}  // namespace cuslice::fake
