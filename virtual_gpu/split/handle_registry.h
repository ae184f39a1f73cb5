// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "config/split/value.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"

namespace cuslice {

// Kinds of handles that the driver makes in a real context, each of them one virtual GPU's.
enum class HandleKind : uint8_t {
    stream,
    module,
    array,
    mipmap,
    pool,
    host_memory,
    event,
    physical_memory,
    node,
    green,
    green_context
};

// The virtual GPUs, by ordinals, that were given access to a pool of another part of their GPU.
struct PoolAccess {
    uint64_t reads = 0, writes = 0;
};
static_assert(kMaxParts <= 64);

struct HandleOwner {
    // Beside a physical GPU's ordinal: a pool that another process has made there, which no part has taken yet.
    static constexpr uint8_t kUnclaimed = 0x80;
    static_assert(kMaxParts <= kUnclaimed);
    bool known = false;
    uint8_t device = 0;      // the virtual GPU's ordinal
    uint64_t context = 0;    // the number of the virtual context that it ends with; 0: none
    PoolAccess access = {};  // of a pool

    bool is_unclaimed() const { return known && device & kUnclaimed; }
};

// Owners of the driver's handles, by handle and kind. Thread-safe.
class HandleRegistry {
  public:
    // False if the kernel gives no memory.
    bool add(const void* handle, HandleKind kind, int device, uint64_t context, PoolAccess access = {});
    HandleOwner find(const void* handle, HandleKind kind);
    void remove(const void* handle, HandleKind kind);
    // A part may read a pool, and write to it, or no longer. Nothing where the pool isn't known.
    void set_access(const void* pool, int device, bool reads, bool writes);
    // An unclaimed pool is this part's from now on. Its owner then, who may be another thread's choice.
    HandleOwner claim(const void* pool, int device);
    // True if there is one of these virtual GPUs, a bit for each ordinal. Of a kind that is never unclaimed.
    bool any_of(uint64_t devices, HandleKind kind);
    // Removes and returns one that ends with this context, the last of `kind`; null if there is none.
    void* take_of(uint64_t context, HandleKind kind);

  private:
    struct Row {
        const void* handle;  // null: free
        uint64_t context;
        HandleKind kind;
        uint8_t device;
        PoolAccess access;
    };
    size_t home(const void* handle) const CUSLICE_REQUIRES(mutex_);
    size_t find_row(const void* handle, HandleKind kind) const CUSLICE_REQUIRES(mutex_);
    bool grow() CUSLICE_REQUIRES(mutex_);
    void put(const Row& row) CUSLICE_REQUIRES(mutex_);
    void remove_row(size_t i) CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::handles};
    PageVector<Row> rows_ CUSLICE_GUARDED_BY(mutex_);  // a power of two of them, open addressing
    size_t count_ CUSLICE_GUARDED_BY(mutex_) = 0;
};

extern constinit HandleRegistry the_handle_registry;
inline HandleRegistry& handle_registry() { return the_handle_registry; }

}  // namespace cuslice
