// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables of virtual memory management: which addresses are reserved, and what is mapped at them. One lock is over
// both, over physical memory and over multicast objects, since a mapping of one and a binding to the other end
// together.

#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>

#include "fake/driver/cuda_api.h"
#include "fake/driver/memory_space.h"

namespace cuslice::fake {

/// Granularity of sizes, offsets and addresses.
constexpr size_t kVirtualGranularity = kPageBytes;

struct Reservation {
    size_t size = 0;
    void* range = nullptr;  // what mmap gave: the alignment cuts a part off
    size_t range_size = 0;
};
struct Mapping {
    size_t size = 0;
    CUmemGenericAllocationHandle handle = 0;  // of physical memory or of a multicast object
    std::map<int, CUmemAccess_flags> access;  // by ordinal
    /// For work that has been submitted: false once it is unmapped.
    std::shared_ptr<std::atomic<bool>> mapped = std::make_shared<std::atomic<bool>>(true);
};

/// Both tables, and the lock that every function of physical.h, multicast.h and virtual_memory.h takes.
struct Tables {
    std::shared_mutex lock;
    std::map<Address, Reservation> reservations;
    std::map<Address, Mapping> mappings;
};

Tables& tables();

/// The entry whose range [key, key + size) contains the address, or end.
template <typename Map>
typename Map::iterator around(Map& map, Address address) {
    auto above = map.upper_bound(address);
    if (above == map.begin())
        return map.end();
    --above;
    return address - above->first < above->second.size ? above : map.end();
}

inline bool whole(size_t value) { return value % kVirtualGranularity == 0; }

/// True if the address lies in reserved addresses, mapped or not. Takes the lock.
bool in_reserved_addresses(Address address);

}  // namespace cuslice::fake
