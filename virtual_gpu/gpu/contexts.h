// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// True of the handles by which every context, or every thread, has a stream of its own.
inline bool is_default(CUstream stream) {
    return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

// The contexts that are in use, on which GPU each is, and a small number for each, by which allocations name it. A
// context can be attached to several times (cuCtxAttach) and ends with the last use. Thread-safe.
class Contexts {
  public:
    using Id = uint16_t;  // 0: none

    // The context's number; it gets one if it has none. 0 if there are more than 65,535 of them.
    Id id_of(CUcontext context, CUdevice device);
    // Its number if it has one.
    Id known_id(CUcontext context);

    // Another name of a context, which has its number and its allocations: a green context's. It is known until it ends
    // itself, however its context ends.
    void add_name(CUcontext name, CUcontext context, CUdevice device);
    void name_ended(CUcontext name);
    bool is_name(CUcontext context);

    void attached(CUcontext context);
    // One use less. False, and it stays, if that would end the context.
    bool give_up_use(CUcontext context);
    // The number is free for another context from now on.
    void ended(CUcontext context);
    // -1 if the context is not known.
    CUdevice device_of(CUcontext context);
    // The same of the context of a stream, which is no default one.
    CUdevice device_of_stream(CUstream stream);

    // The context with this number; null if there is none.
    CUcontext handle_of(Id id);

    // The contexts that there are, without their other names, up to `most` of them, and where it is wanted on which GPU
    // each is. Returns how many there are.
    size_t list(CUcontext* into, size_t most, CUdevice* devices = nullptr);
    // True if there is a context on this GPU.
    bool any_on(CUdevice device);
    // The context, if there is only one. Costs a load.
    CUcontext sole() const { return sole_.load(std::memory_order_acquire); }

  private:
    struct Entry {
        CUcontext context;  // null: the number is free
        CUdevice device;
        uint32_t uses;
        Id number;  // of the context that this is another name of; 0: it is one itself

        bool is_context() const { return context && !number; }
    };
    Entry* find(CUcontext context) CUSLICE_REQUIRES(mutex_);
    // The same, and null for null, by which a free entry is found.
    Entry* find_known(CUcontext context) CUSLICE_REQUIRES(mutex_);
    void count() CUSLICE_REQUIRES(mutex_);
    Entry* add(const Entry& entry) CUSLICE_REQUIRES(mutex_);
    Id number_of(const Entry* entry) const CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::contexts};
    PageVector<Entry> entries_ CUSLICE_GUARDED_BY(mutex_);
    std::atomic<CUcontext> sole_{nullptr};
};

}  // namespace cuslice
