// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Memory of the virtual memory API (cuMemCreate). An allocation lives until its last handle is released and its last
// mapping or binding undone, in whichever order; only then does it stop counting. Allocations that were not noted here
// (another process's, or memory of the host) are passed over everywhere. Thread-safe.
class PhysicalMemory {
  public:
    using Handle = CUmemGenericAllocationHandle;

    /// By what an allocation may be kept alive that has no handle and no mapping here any more.
    enum class Kept : uint8_t {
        by_nobody,
        by_array,  // or another process's multicast object
        exported,  // by a descriptor, or a process that has imported it
    };
    /// Called, without a lock held, for each allocation that ends.
    struct OnFreed {
        void (*call)(void* self, int gpu, uint64_t bytes, Kept kept);
        void* self = nullptr;
    };
    static constexpr int kMaxGpus = 64;

    // False if there is no memory to write it down in.
    bool created(Handle handle, uint64_t bytes, int gpu);
    // One more handle to an allocation that is mapped (cuMemRetainAllocationHandle).
    void retained(Handle handle);
    // Other processes or arrays can hold it from now on, which is not seen here.
    void kept_elsewhere(Handle handle, Kept by);

    // Around the driver's calls: the change is noted before, because afterwards another thread can have the same handle
    // or address again, and taken back if the driver refused.
    struct Change {
        Handle handle = 0;
        uint64_t address = 0, bytes = 0;
        bool noted = false;
        // A bit for each GPU with exported memory that may end by it.
        uint64_t exported = 0;
    };
    Change release(Handle handle);
    void release_failed(const Change& change);
    void release_done(const Change& change, OnFreed on_freed);

    bool mapped(CUdeviceptr address, uint64_t bytes, Handle handle);

    // All mappings that lie in the range leave the books; unmap_done gives up what they kept alive, unmap_failed puts
    // them back.
    struct Unmapping {
        PageVector<Change> mappings;
        uint64_t exported = 0;
    };
    void unmap(CUdeviceptr address, uint64_t bytes, Unmapping* gone);
    void unmap_failed(Unmapping* gone);
    void unmap_done(Unmapping* gone, OnFreed on_freed);

    // Multicast objects: they take nothing themselves, and what is bound to one is kept alive until it is unbound or
    // the object ends, as an allocation does. An object that was not noted here is another process's; what is bound to
    // it is kept elsewhere. False if there is no memory to write it down in.
    bool created_object(Handle object) { return created(object, 0, -1); }
    bool bound(Handle object, uint64_t offset, uint64_t bytes, Handle memory);
    // The same of what is mapped at an address.
    bool bound_at(Handle object, uint64_t offset, uint64_t bytes, CUdeviceptr address);
    // A binding on a GPU, named by its offset, that leaves the books.
    struct Unbinding {
        Handle object = 0, memory = 0;
        uint64_t offset = 0, bytes = 0;
        bool noted = false;
        uint64_t exported = 0;
    };
    Unbinding unbind(Handle object, int gpu, uint64_t offset);
    void unbind_failed(const Unbinding& binding);
    void unbind_done(const Unbinding& binding, OnFreed on_freed);

    // Bytes that count on a GPU, and in how many allocations.
    uint64_t held_on(int gpu, uint64_t* allocations);

  private:
    struct Allocation {
        Handle handle;
        uint64_t bytes;
        uint32_t handles, mappings;
        int32_t gpu;
        Kept kept;
    };
    struct Mapping {
        uint64_t address, bytes;
        Handle handle;
    };
    // Both sorted by their first member, and found by halving.
    struct Binding {
        Handle object, memory;
        uint64_t offset, bytes;
    };
    size_t index_of(Handle handle) const CUSLICE_REQUIRES(mutex_);
    size_t mapping_at(uint64_t address) const CUSLICE_REQUIRES(mutex_);
    Allocation* find(Handle handle) CUSLICE_REQUIRES(mutex_);
    bool take_if_unused(Handle handle, Allocation* ended) CUSLICE_REQUIRES(mutex_);
    uint64_t exported_that_may_end(Handle handle) CUSLICE_REQUIRES(mutex_);
    bool insert_binding(const Binding& binding) CUSLICE_REQUIRES(mutex_);
    void end_if_unused(Handle handle, OnFreed on_freed);
    void end_bindings_of(const Allocation& object, OnFreed on_freed);

    Mutex mutex_{LockRank::physical_memory};
    PageVector<Allocation> allocations_ CUSLICE_GUARDED_BY(mutex_);
    PageVector<Mapping> mappings_ CUSLICE_GUARDED_BY(mutex_);
    PageVector<Binding> bindings_ CUSLICE_GUARDED_BY(mutex_);  // in no order: there are few
};

}  // namespace cuslice
