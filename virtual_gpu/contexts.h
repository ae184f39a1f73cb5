#pragma once
#include <cstdint>

#include "policy/mutex.h"
#include "policy/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The contexts that the program made itself (not the primary ones), and on which GPU each is. A context can be attached
// to several times (cuCtxAttach) and ends with the last use. Thread-safe.
class Contexts {
  public:
    void created(CUcontext context, CUdevice device);
    void attached(CUcontext context);
    // True if giving up one use ends the context; the use itself is given up by `detached` once the driver has agreed.
    bool last_use(CUcontext context);
    void detached(CUcontext context);
    void destroyed(CUcontext context);
    // -1 if the context is none of these.
    CUdevice device_of(CUcontext context);

    Mutex& mutex() { return mutex_; }

  private:
    struct Entry {
        CUcontext context;
        CUdevice device;
        std::uint32_t uses;
    };
    Entry* find(CUcontext context);

    Mutex mutex_;
    PageVector<Entry> entries_;
};

}  // namespace cuslice
