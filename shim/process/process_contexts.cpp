// Which context is current, on which GPU, and what becomes of those whose beginning or end no hook has seen.
#include "policy/base/cancellation.h"
#include "policy/base/page_vector.h"
#include "shim/process/process.h"
#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/visit.h"
#include "virtual_gpu/split/context_end.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

constinit thread_local Process::LastContext Process::last_context{};

const Process::Current& Process::look_up(CUcontext now) {
    LastContext& last = last_context;
    const std::uint32_t epoch = context_epoch_.load(std::memory_order_acquire);
    CUdevice device = -1;
    last = {};
    if (!now || CUSLICE_REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return last.current;
    VirtualGpu* gpu = gpu_of(device);
    const Contexts::Id id = know_context(gpu, now, device);
    last = {now, {gpu, id, gpu && caches_anything() ? caches_.of(*gpu, id) : nullptr}, epoch};
    return last.current;
}

// Measured before it is known: another thread that meets it at the same time measures it as well, and neither is
// granted a byte on the strength of a figure that leaves it out.
Contexts::Id Process::know_context(VirtualGpu* gpu, CUcontext context, CUdevice device) {
    if (const Contexts::Id id = gpu_state().contexts.known_id(context)) return id;
    if (!gpu || !gpu->limited()) return gpu_state().contexts.id_of(context, device);
    const DisableCancellation uncancelled;
    const MakingContext making;
    gpu->meet_context();
    const Contexts::Id id = gpu_state().contexts.id_of(context, device);
    if (active_primary(device) == context) gpu->primary().is(context);
    if (on_new_context) on_new_context(*gpu, context, id);
    return id;
}

void Process::look_for_ended(VirtualGpu& gpu) {
    const CUcontext primary = gpu.primary().handle.load();
    const auto has_ended = [&] {
        return primary && gpu_state().contexts.known_id(primary) &&
               (!physical_primary_is_active(gpu.device()) || gpu.primary().is_another());
    };
    if (!has_ended()) return;
    const ContextEnd end(primary), no_retain(&gpu.primary());
    if (has_ended()) forget_context(&gpu, primary);
}

void Process::forget_context(VirtualGpu* gpu, CUcontext context) {
    struct Sum {
        PageVector<Allocation> allocations;
        std::uint64_t bytes = 0, managed = 0;
    } sum;
    if (gpu && gpu->limited()) {
        gpu->budget().begin_release();
        gpu_state().allocations.erase_context(
            gpu_state().contexts.known_id(context),
            [](const Allocation& allocation, void* argument) {
                auto& all = *static_cast<Sum*>(argument);
                all.bytes += allocation.bytes;
                if (is_managed(allocation)) all.managed += allocation.bytes;
                all.allocations.push_back(allocation);
            },
            &sum);
    }
    if (const LeftMemory left; left)
        for (const Allocation& allocation : sum.allocations)
            if (!is_array(allocation)) CUSLICE_PHYSICAL(cuMemFree_v2)(allocation.address);
    if (gpu && gpu->limited()) {
        gpu->managed_changed(-static_cast<std::int64_t>(sum.managed));
        gpu->budget().end_release(sum.bytes);
    }
    sum.allocations.release();
    if (caches_anything()) caches_.context_ended(context);
    gpu_state().contexts.ended(context);
    forget_contexts();
}

}  // namespace cuslice
