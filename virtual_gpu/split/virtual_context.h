// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/relaxed.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// A context of a virtual GPU. All of one physical GPU's stand for the one real context that there is on it, and each
// keeps that alive. A handle is the object's own address, but that of the first part's primary context is the real
// one's: whoever is shown the physical GPU (NVIDIA's runtime) hands that on, and it has to mean the same everywhere.
struct VirtualContext {
    // The last end of a primary one that doesn't live. NVIDIA's runtime uses its own again after a reset; one that the
    // program has ended is used no longer.
    enum class Ended : uint8_t { never, by_program, by_runtime };

    std::atomic<bool> lives{false};
    Relaxed<int> device = 0;            // the virtual GPU's ordinal
    Relaxed<CUcontext> real = nullptr;  // the physical GPU's primary context
    Relaxed<unsigned> flags = 0;        // as asked for
    Relaxed<unsigned> preset = 0;       // a primary one's, which it begins with
    Relaxed<unsigned> uses = 0;  // a primary one's retains, which outlive a reset; another's creation and attaches
    Relaxed<Ended> ended = Ended::never;
    Relaxed<unsigned> version =
        0;  // of the API, of one that has it from the first form of cuCtxCreate; 0: the real one's
    Relaxed<uint64_t> number = 0;  // what cuCtxGetId says: never the same again

    bool primary() const;
    CUcontext handle() const;
};

// All virtual contexts of this process. Their storage is never given back: a thread may hold on to a handle longer
// than its context lives. Thread-safe; none of these calls the driver.
class VirtualContexts {
  public:
    // The context behind a handle. `context` null: a real one that is not ours, such as a green context's. `real`
    // null: no context at all, or not any more.
    struct Resolved {
        VirtualContext* context = nullptr;
        CUcontext real = nullptr;
    };
    Resolved resolve(CUcontext handle);
    // The context with this handle, alive or not; null if it is not ours.
    VirtualContext* find(CUcontext handle);

    // The one that lives with this number; null if it has ended.
    VirtualContext* numbered(uint64_t number);

    VirtualContext& primary(int device) { return contexts_[device]; }
    // A new one, in use once; null if there are too many.
    VirtualContext* create(int device, CUcontext real, unsigned flags);
    // A primary one lives from now on, with the uses that it has.
    void begin(VirtualContext& primary, CUcontext real);
    void use(VirtualContext& context);
    // One use, unless it has some.
    void use_at_least_once(VirtualContext& context);
    // One use less, unless it is the last: false then.
    bool give_up(VirtualContext& context);
    void end(VirtualContext& context);
    // The end of a primary one that goes on being used: the next one to ask for it begins it again.
    void interrupt(VirtualContext& primary);
    // The runtime has reset it, and begins it again by its next use.
    void expect_use(VirtualContext& primary) { primary.ended = VirtualContext::Ended::by_runtime; }

    // True if another context of the same physical GPU is alive.
    bool has_company(const VirtualContext& context);

  private:
    friend struct VirtualContext;
    static constexpr size_t kPrimary = 64, kMax = 4096;
    void start(VirtualContext& context, CUcontext real) CUSLICE_REQUIRES(mutex_);

    Mutex mutex_{LockRank::virtual_contexts};
    uint64_t numbers_ CUSLICE_GUARDED_BY(mutex_) = 0;
    size_t next_ CUSLICE_GUARDED_BY(mutex_) =
        kPrimary;  // where to look for a free one: the longer a handle is not used again the better
    static VirtualContext contexts_[kMax];
};

extern constinit VirtualContexts the_virtual_contexts;
inline VirtualContexts& virtual_contexts() { return the_virtual_contexts; }

}  // namespace cuslice
