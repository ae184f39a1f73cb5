// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/out_parameter.h"
#include "shim/driver/report.h"
#include "shim/entry.h"
#include "virtual_gpu/gpu/charged_allocation.h"
#include "virtual_gpu/gpu/driver_steps.h"
#include "virtual_gpu/gpu/relaxed_captures.h"

namespace cuslice {

// A reservation that is rolled back too if the hook is left by a longjmp (left_hook.cpp).
class HookReservation : public Reservation {
  public:
    HookReservation(VirtualGpu& gpu, uint64_t bytes) : Reservation(gpu.budget(), bytes) {
        hook_frame.reserving = &gpu.budget();
    }
    ~HookReservation() { hook_frame.reserving = nullptr; }

    void commit() {
        hook_frame.reserving = nullptr;
        Reservation::commit();
    }
};

// Writes down that the program holds what was reserved. CUDA_ERROR_OUT_OF_MEMORY if there is no host memory to write
// it in.
inline CUresult record(CUdeviceptr address, uint64_t bytes, const Process::Current& current, Kind kind) {
    const bool noted =
        gpu_state().allocations.insert({address, Budget::charged(bytes), current.context,
                                        static_cast<uint8_t>(current.gpu->ordinal()), static_cast<uint8_t>(kind)});
    return noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The bytes to charge for a block of cuMemAlloc. An H200's driver gives memory in chunks of 2 MiB, and small blocks
// share chunks. Where NVML lists the process, the next poll of the footprint finds what was rounded up; elsewhere
// nothing would, so whole chunks are charged.
inline uint64_t rounded_size(const VirtualGpu& gpu, uint64_t bytes) {
    constexpr uint64_t kChunk = 2 << 20;
    if (bytes <= kChunk / 2) [[likely]]
        return bytes;
    if (!gpu.physical().measures_steps())
        return bytes;
    const uint64_t up = (bytes + kChunk - 1) / kChunk * kChunk;
    return up < bytes ? bytes : up;
}

// The driver may have less than the limit allows, because the caches hold it. True if they have given anything back,
// and the driver is to be asked again.
inline bool made_room(CUresult result, VirtualGpu& gpu, uint64_t bytes) {
    return result == CUDA_ERROR_OUT_OF_MEMORY && gpu.caches() && process().caches().trim(gpu, bytes);
}

template <typename Call>
CUresult ask_driver(VirtualGpu& gpu, uint64_t bytes, Call call) {
    const CUresult result = call();
    return made_room(result, gpu, bytes) ? call() : result;
}

inline constexpr Process::Current kNothingCounted{};

// The thread's context and its GPU; none where there is nothing to count. Valid as Process::current() is.
[[gnu::always_inline]] inline const Process::Current& counted_current(const HookEntry& entry) {
    return entry.counts() ? process().current() : kNothingCounted;
}

inline VirtualGpu* current_gpu(const HookEntry& entry) { return counted_current(entry).gpu; }

// The shape of every hook that allocates: reserve, call the driver, record. `pointer` is where the program has the
// address put, `call` the driver's function, which is given where to put it, `free` its counterpart.
template <typename Pointer, typename Call, typename Free>
[[gnu::always_inline]] inline CUresult counted_allocation(Function function, Kind kind, uint64_t bytes,
                                                          Pointer* pointer, Call call, Free free) {
    const HookEntry entry(OnStack::Hold::quick);
    const Process::Current current = counted_current(entry);
    VirtualGpu* gpu = current.gpu;
    if (!gpu || !gpu->limited())
        return call(pointer);
    LimitError why;
    const uint64_t taken = kind == Kind::memory ? rounded_size(*gpu, bytes) : bytes;
    if (!gpu->reserve(taken, &why))
        return refuse(function, *gpu, why, bytes);
    HookReservation reservation(*gpu, taken);
    OutParameter<Pointer> made(pointer);
    const CUresult result = charged_allocation(
        reservation, [&] { return ask_driver(*gpu, bytes, [&] { return call(made.place()); }); },
        [&] {
            const CUresult recorded = record(*made, taken, current, kind);
            if (recorded == CUDA_SUCCESS && kind == Kind::managed)
                gpu->physical().managed_changed(static_cast<int64_t>(Budget::charged(bytes)));
            return recorded;
        },
        [&] { free(*made); });
    if (result == CUDA_SUCCESS)
        made.keep();
    return result;
}

// Memory without a record was freed: a pool's, which gives it back to the driver when the program synchronises, or some
// that another process made.
[[gnu::cold, gnu::noinline]] inline void note_pool_free() {
    VirtualGpu* const current = UnrecordedFrees::any_watched() ? process().current().gpu : nullptr;
    if (current && current->unrecorded_frees().watched())
        current->driver_gave_back();
    for (VirtualGpu& gpu : process().gpus())
        if (gpu.pools().any())
            gpu.siblings().given_back().publish_settled();
}

// The shape of every hook that frees. (Looking the record up first would cost a miss of the cache before the driver's
// own; so both are under way together.)
template <typename GiveBack, typename Call>
CUresult counted_free(CUdeviceptr address, GiveBack give_back, Call call) {
    const HookEntry entry(OnStack::Hold::quick);
    if (!entry.counts())
        return call();
    gpu_state().allocations.expect(address);
    return charged_free(
        address,
        [&] {
            hook_frame.freeing = true;
            return call();
        },
        [&](CUresult result, const Allocation& freed) {
            // Without a record it is memory of a pool, or none that we counted.
            if (freed.address) {
                VirtualGpu& gpu = process().gpu(freed.gpu);
                if (is_managed(freed))
                    gpu.physical().managed_changed(-static_cast<int64_t>(freed.bytes));
                give_back(gpu, freed);
            } else if (result == CUDA_SUCCESS && (Siblings::any_joined() || UnrecordedFrees::any_watched())) {
                note_pool_free();
            }
            hook_frame.freeing = false;
        });
}

constexpr bool makes_context(Function function) {
    switch (function) {
        case Function::cuCtxCreate:
        case Function::cuCtxCreate_v2:
        case Function::cuCtxCreate_v3:
        case Function::cuCtxCreate_v4:
        case Function::cuDevicePrimaryCtxRetain:
            return true;
        default:
            return false;
    }
}

// The shape of every hook in which the driver takes memory by itself: charge what it takes at least, measure before and
// after, and undo what does not fit.
template <typename Call, typename Undo>
CUresult counted_step(Function function, VirtualGpu* gpu, Call call, Undo undo, uint64_t least = 0) {
    if (!gpu || !gpu->limited())
        return call();
    process().charge_unseen(*gpu, true);  // else it would be taken for what was there before
    LimitError why;
    DriverFootprint::Step step = DriverSteps(*gpu).before(makes_context(function));
    if (least && !DriverSteps(*gpu).reserve_lower_bound(step, least, &why))
        return refuse(function, *gpu, why);
    CUresult result = call();
    if (made_room(result, *gpu, ~0ull))
        result = call();  // how much it needs is the driver's to know
    if (result != CUDA_SUCCESS)
        return result;
    if (DriverSteps(*gpu).after(step, &why))
        return result;
    DriverFootprint::Step back = DriverSteps(*gpu).before();
    {
        const RelaxedCaptures relaxed;
        undo();
    }
    DriverSteps(*gpu).after(back, nullptr);
    return refuse(function, *gpu, why);  // not before: the line says what is held without it
}

// The same where something is made: `make` is given where the driver puts it, `undo` what it was.
template <typename Make, typename Undo, typename Handle, typename... Arguments>
CUresult counted_making(Make make, Undo undo, VirtualGpu* gpu, Handle* into, const Arguments&... arguments) {
    OutParameter<Handle> made(into);
    const CUresult result = counted_step(
        make.function, gpu, [&] { return make(made.place(), arguments...); }, [&] { undo(*made); });
    if (result == CUDA_SUCCESS)
        made.keep();
    return result;
}

// Null of a GPU without a limit: there is nothing to count.
inline VirtualGpu* if_limited(VirtualGpu* gpu) { return gpu && gpu->limited() ? gpu : nullptr; }

// The GPU that a call names, for hooks that need no current context: a context that no hook has seen is charged first.
// Null: there is nothing to count.
inline VirtualGpu* named_gpu(const HookEntry& entry, CUdevice device) {
    VirtualGpu* const gpu = if_limited(entry.counts() ? process().gpu_of(device) : nullptr);
    if (gpu)
        process().charge_unseen(*gpu, true);
    return gpu;
}

// The same for imports, whose GPU is known only afterwards: the current context's, or the only one.
inline VirtualGpu* importing_gpu(const HookEntry& entry) {
    if (VirtualGpu* const gpu = current_gpu(entry))
        return gpu;
    return process().gpu_count() == 1 ? named_gpu(entry, 0) : nullptr;
}

}  // namespace cuslice
