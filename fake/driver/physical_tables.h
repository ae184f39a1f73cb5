#pragma once
// The tables of virtual memory management, which its parts share: reservations, mappings, physical memory. One lock is
// over all of them and over the multicast objects, since a mapping of one and a binding to the other end together.

#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>

#include "fake/driver/virtual_memory.h"

namespace cuslice::fake {

using PhysicalTable = HandleTable<Physical, CUmemGenericAllocationHandle, HandleKind::Physical>;
extern PhysicalTable physicals;

struct Reservation {
    std::size_t size = 0;
    void* range = nullptr;  // what mmap gave: the alignment cuts a part off
    std::size_t range_size = 0;
};
struct Mapping {
    std::size_t size = 0;
    CUmemGenericAllocationHandle handle = 0;  // of physical memory or of a multicast object
    std::map<int, CUmemAccess_flags> access;  // by ordinal
    /// For work that has been submitted: false once it is unmapped.
    std::shared_ptr<std::atomic<bool>> mapped = std::make_shared<std::atomic<bool>>(true);
};

/// Both tables, and the lock that every function of virtual_memory.h and multicast.h takes.
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
    if (above == map.begin()) return map.end();
    --above;
    return address - above->first < above->second.size ? above : map.end();
}

inline bool whole(std::size_t value) { return value % virtual_granularity == 0; }

/// Frees the memory when nobody has it any more; with the lock held.
void drop_if_unused(CUmemGenericAllocationHandle handle, Physical& physical);
/// One binding or mapping less; with the lock held.
void give_up_physical(CUmemGenericAllocationHandle handle);

}  // namespace cuslice::fake
