// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "config/config_error.h"
#include "config/settings.h"
#include "config/split/plan.h"
#include "policy/base/mutex.h"
#include "shim/process/recording.h"
#include "virtual_gpu/cache/caches.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"
#include "virtual_gpu/selection/framework_environment.h"
#include "virtual_gpu/selection/program_gpus.h"
#include "virtual_gpu/turns/turns.h"

namespace cuslice {

// Where a process stands with cuslice. Nothing is read or opened before the first call.
enum class Readiness : int {
    not_yet,
    ready,
    no_driver,          // programs that merely look for a GPU go on
    bad_configuration,  // nothing is loaded, so nothing can be allocated: fail closed
};

// Everything that cuslice knows in this process. One of them, never destroyed: threads may still call while the program
// ends.
class Process {
  public:
    static constexpr int kMaxGpus = 64;

    // Reads the configuration and loads the driver, the first time. Thread-safe.
    Readiness load();
    Readiness readiness() const { return readiness_.load(std::memory_order_acquire); }

    // No lock of ours is held while NVML or the driver is asked: NVML may take seconds, start processes, or never
    // answer.

    // Before the driver's own cuInit: sees to it that CUDA_VISIBLE_DEVICES says what the program is to see, as long as
    // the GPUs are not open. False if the settings do not fit the GPUs; error() then says why, and nothing can be
    // allocated. Thread-safe.
    // Where GPUs are split the variable is the program's to choose among virtual GPUs; then `list` is what the driver
    // is to read there during its cuInit, or with *set false nothing (VisibleDuringInit).
    bool choose_gpus(VisibleText& list, bool* set);

    // After the driver's own cuInit succeeded: which GPUs there are and what of each is allowed, the first time.
    // False if the settings do not fit the GPUs; error() then says why, and from now on nothing can be allocated.
    // Thread-safe.
    bool open_gpus();

    // Once the GPUs are open: sets the variables that frameworks read after cuInit (virtual_gpu/selection/
    // framework_environment.h), the first time. Thread-safe.
    void tell_frameworks();
    // NAME=VALUE of those that a framework has read already and that nobody has set, divided by spaces.
    std::string_view missed_variables() const { return missed_variables_.view(); }

    // Loads the real NVML, the first time. False if there is none. Thread-safe.
    bool load_nvml();

    // The same, and initialises it, where that wasn't done: False if it can't be initialised now; it is tried again
    // next time. Where GPUs are split it shows the virtual ones from then on; if the settings do not fit the GPUs the
    // answer is false, and readiness() and error() say so. Thread-safe.
    bool start_nvml();

    // The slice of a GPU, for CUDA and NVML alike: CUDA knows the GPU by its ordinal, NVML by its handle.
    Slice slice_of(const GpuIdentity& identity, uint64_t total) const;
    // The same of a virtual GPU; the identity and the total are the physical one's.
    Slice slice_of(const VirtualPart& part, const GpuIdentity& physical, uint64_t total) const;

    const Settings& settings() const;
    const ConfigError& error() const { return error_; }
    // The driver that was loaded, or why none was.
    const char* driver_text() const { return driver_text_; }
    // How the driver was found: completes "found …".
    const char* driver_found() const { return driver_found_; }
    // A driver that was in the process before, opened past us; null if there was none.
    const char* driver_past_us() const { return past_us_ ? path_past_us_ : nullptr; }

    int gpu_count() const { return gpu_count_.load(std::memory_order_acquire); }
    /// True where no GPU is left since CUDA_VISIBLE_DEVICES names one twice. After gpu_count().
    bool gpu_named_twice() const { return named_twice_; }
    VirtualGpu& gpu(int ordinal) { return reinterpret_cast<VirtualGpu*>(gpu_storage_)[ordinal]; }
    std::span<VirtualGpu> gpus() { return {&gpu(0), static_cast<size_t>(gpu_count())}; }
    VirtualGpu* gpu_of(CUdevice device);
    VirtualGpu* find_gpu(const char* uuid);
    // True once some GPU has a limit, or a recording is made: otherwise nothing is counted and every hook is one jump.
    bool limits_anything() const { return limits_.load(std::memory_order_relaxed); }
    // True if the settings have some GPU's freed memory kept, whether it is here or not. Known once the settings are,
    // which is long before the GPUs.
    bool may_cache() const { return may_cache_; }
    // True if the settings give the program a share of some GPU's time, known as early.
    bool shares_time() const { return shares_time_; }
    // True once some GPU's freed memory is kept.
    bool caches_anything() const { return features() & kCaching; }
    // True while allocations are written down.
    bool records() const { return features() & kRecording; }
    // All that an allocation may have to pass through, and kReady if readiness() is `ready`: for callers that can't
    // afford to ask twice. Without kReady it is to be asked.
    enum : unsigned char { kCaching = 1, kRecording = 2, kPlusContext = 4, kReady = 8, kSharingTime = 16 };
    // True once the GPUs' work is looked at, by caches before memory is used again or to share time: so captures and
    // ends of contexts are followed.
    bool watches_work() const { return features() & (kCaching | kSharingTime); }
    unsigned char features() const { return features_.load(std::memory_order_acquire); }
    void stop_recording() { remove_features(kRecording); }

    // The thread's current context, and its GPU. `gpu` is null if there is none, or before the GPUs are open.
    struct Current {
        VirtualGpu* gpu = nullptr;
        Contexts::Id context = 0;
        ContextAllocator* cache = nullptr;  // where the GPU's mode has one
    };
    // The calling thread's GPU, context and cache; valid until it asks again.
    const Current& current() {
        CUcontext now = nullptr;
        if (CUSLICE_REAL(cuCtxGetCurrent)(&now) != CUDA_SUCCESS)
            now = nullptr;
        return was_last(now) ? last_context.current : look_up(now);
    }
    // The same of the cache alone, for what is called most, where caches_anything().
    ContextAllocator* current_cache() {
        CUcontext now = nullptr;
        if (CUSLICE_REAL(cuCtxGetCurrent).filled(&now) != CUDA_SUCCESS) [[unlikely]]
            return nullptr;
        return was_last(now) ? last_context.current.cache : look_up(now).cache;
    }
    // The calling thread's last answer.
    static const Current& last_current() { return last_context.current; }
    // A context that is there, and maybe nobody saw begin: a runtime may make its own where no hook is (CUDA 13.0's
    // doesn't). Then it is measured here, and whoever set `on_new_context` is told. Its number.
    Contexts::Id know_context(VirtualGpu* gpu, CUcontext context, CUdevice device,
                              CacheOfUnseen cache = CacheOfUnseen::prepared);
    void (*on_new_context)(VirtualGpu& gpu, CUcontext context, Contexts::Id id, CacheOfUnseen cache) = nullptr;

    // A primary context may have ended where no hook was, and what was in it with it: looked for before anything is
    // refused.
    void look_for_ended(VirtualGpu& gpu);

    // The GPU's primary context may be there though no hook has seen it begin and this thread hasn't got it: it is
    // charged before memory is that needs no current context. With `beside` set also where another context is known.
    // False if the GPU, with all its partitions, has no context.
    bool charge_unseen(VirtualGpu& gpu, bool beside = false, CacheOfUnseen cache = CacheOfUnseen::prepared);

    // A context has ended: what was in it is nobody's any more. `gpu` may be null. Within a ContextEnd.
    void forget_context(VirtualGpu* gpu, CUcontext context);

    // A context ended, so that its handle may come back for another GPU.
    void forget_contexts() { context_epoch_.fetch_add(1, std::memory_order_release); }

    // This thread has left whatever it was doing by a longjmp: what it held is free again.
    void leave();

    Caches& caches() { return caches_; }
    Turns& turns() { return turns_; }
    Recording& recording() { return recording_; }

  private:
    // The context that this thread asked for last: most threads stay with one.
    struct LastContext {
        CUcontext context;
        Current current;
        uint32_t epoch;  // 0, which is never the present one, where there is no context
    };
    static constinit thread_local LastContext last_context;
    bool was_last(CUcontext now) const {
        // With no context there is no epoch either: nothing matches.
        return last_context.context == now && last_context.epoch == context_epoch_.load(std::memory_order_acquire);
    }
    const Current& look_up(CUcontext now);
    void remove_features(unsigned features) {
        features_.fetch_and(static_cast<unsigned char>(~features), std::memory_order_relaxed);
    }
    // Charges the GPU's primary context, where it is alive and wasn't known. False if it isn't alive.
    bool know_primary(VirtualGpu& gpu, CacheOfUnseen cache);

    // The driver's GPUs, in its order, and what the program is to count as GPUs.
    struct FoundGpus {
        size_t count = 0;
        GpuIdentity identities[kMaxGpus];
        uint64_t totals[kMaxGpus] = {};  // bytes; 0: not known
        VirtualParts parts;
        bool named_twice = false;  // by CUDA_VISIBLE_DEVICES

        std::span<GpuIdentity> gpus() { return {identities, count}; }
        std::span<const uint64_t> sizes() const { return {totals, count}; }
    };

    void connect();
    bool read_settings();
    bool identify(CUdevice device, GpuIdentity* identity) const;
    size_t list_gpus(std::span<GpuIdentity> all);
    bool find_gpus(FoundGpus& found, ConfigError& error);
    bool choose_parts(FoundGpus& found, ConfigError& error);
    bool split_visible(FoundGpus& found, ConfigError& error);
    bool open_virtual_nvml();
    bool list_physical(std::span<const GpuIdentity> all, VisibleText& list, bool* set, ConfigError& error);
    bool choose_visible(std::span<const GpuIdentity> all, ConfigError& error);
    void open_gpu(int ordinal, const VirtualPart& part, const FoundGpus& found);
    bool check_selectors(std::span<GpuIdentity> visible, ConfigError& error);
    bool fail_closed(const ConfigError& error);
    bool no_memory();
    static void before_fork();
    static void after_fork();
    static void after_fork_in_child();

    Mutex mutex_{LockRank::process};
    std::atomic<Readiness> readiness_{Readiness::not_yet};
    std::atomic<int> gpu_count_{0};
    bool named_twice_ = false;  // published by gpu_count_
    std::atomic<bool> limits_{false};
    std::atomic<unsigned char> features_{0};
    std::atomic<uint32_t> context_epoch_{1};
    std::atomic<int> nvml_{0};  // 0: not tried, 1: loaded, 2: none
    std::atomic<bool> gpus_open_{false};
    bool may_cache_ = false, shares_time_ = false, past_us_ = false;
    bool told_frameworks_ = false;  // with the lock held
    MissedVariables missed_variables_;
    ConfigError error_;
    const char* driver_found_ = "";
    char driver_text_[512] = {}, path_past_us_[512] = {};

    ProgramGpus program_gpus_;  // where some are split, and NVML is there
    Caches caches_;
    Turns turns_{caches_.work()};
    Recording recording_;

    // Raw storage, so that an unused library is pages of zeros and no constructor.
    alignas(VirtualGpu) static unsigned char gpu_storage_[kMaxGpus * sizeof(VirtualGpu)];
    alignas(PhysicalGpu) static unsigned char physical_gpu_storage_[kMaxGpus * sizeof(PhysicalGpu)];  // as CUDA counts
};

// Every hook asks for it several times, so it is no call.
extern constinit Process the_process;
inline Process& process() { return the_process; }

}  // namespace cuslice
