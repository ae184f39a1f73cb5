// SPDX-License-Identifier: Apache-2.0
// Contexts: each takes memory that no allocation asks for, and its end frees every allocation in it.
#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"
#include "virtual_gpu/split/context_lifetime.h"

namespace cuslice {

namespace {

// How a context is made. One with fewer multiprocessors, or for graphics, takes as much memory as it likes.
struct Making {
    bool usual;
    unsigned flags;
};

// The program's own place is written when the context is to be had.
template <typename Create, typename... Arguments>
CUresult counted_create(Create create, CUdevice device, CUcontext* context, Making way, Arguments... arguments) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    if (const CUresult refused = join_others(gpu); refused != CUDA_SUCCESS)
        return refused;
    CUcontext made = nullptr;
    const MakingContext making;
    const CUresult result = counted_first_context(
        create.function, gpu, way.usual ? kind_of_context(gpu, way.flags) : 0,
        [&] { return create(context ? &made : nullptr, arguments...); },
        [&] {
            CUSLICE_REAL(cuCtxDestroy_v2)(made);
            const LeftMemory none;
        });
    if (result != CUDA_SUCCESS)
        return result;
    *context = made;
    const Contexts::Id id = gpu_state().contexts.id_of(made, device);
    process().forget_contexts();
    if (VirtualGpu* its = process().gpu_of(device))
        new_context(*its, made, id);
    return result;
}

template <typename Destroy>
CUresult counted_destroy(Destroy destroy, CUcontext context) {
    const HookEntry entry;
    const auto call = [&] { return destroy(context); };
    Contexts& contexts = gpu_state().contexts;
    VirtualGpu* gpu = gpu_if(entry.counts(), contexts.device_of(context));
    if (!contexts.is_name(context))
        return counted_end(gpu, context, nullptr, call);
    // A green context's: what a driver makes of that is not documented, but the allocations are the primary context's.
    const ContextEnd end(context);
    const CUresult result = call();
    if (result == CUDA_SUCCESS && gpu)
        gpu->driver_gave_back();
    return result;
}

// One use less, unless it is the last. The driver has heard of it before anybody else's last one.
template <typename Detach>
bool detached_one_of_several(CUcontext context, Detach detach, CUresult* result) {
    const Visit no_end(context);
    Contexts& contexts = gpu_state().contexts;
    if (!contexts.give_up_use(context))
        return false;
    *result = detach(context);
    if (*result != CUDA_SUCCESS)
        contexts.attached(context);
    return true;
}

}  // namespace

// The slice's memory is taken now, where it is to be taken at once.
void new_context(VirtualGpu& gpu, CUcontext context, Contexts::Id id, CacheOfUnseen cache) {
    log_slice(gpu, context);
    process().turns().use(gpu);
    if (!gpu.caches() || cache == CacheOfUnseen::left)
        return;
    uint64_t missing = 0;
    if (!process().caches().prepare(gpu, id, &missing))
        report_missing(gpu, missing);
    report_unpublished();
}

CUSLICE_HOOK(cuCtxCreate, context, flags, device) {
    return counted_create(CUSLICE_REAL(cuCtxCreate), device, context, {true, flags}, flags, device);
}

CUSLICE_HOOK(cuCtxCreate_v2, context, flags, device) {
    return counted_create(CUSLICE_REAL(cuCtxCreate_v2), device, context, {true, flags}, flags, device);
}

CUSLICE_HOOK(cuCtxCreate_v3, context, parameters, count, flags, device) {
    return counted_create(CUSLICE_REAL(cuCtxCreate_v3), device, context, {count == 0, flags}, parameters, count, flags,
                          device);
}

CUSLICE_HOOK(cuCtxCreate_v4, context, parameters, flags, device) {
    return counted_create(CUSLICE_REAL(cuCtxCreate_v4), device, context, {!parameters, flags}, parameters, flags,
                          device);
}

CUSLICE_HOOK_FORM(cuCtxDestroy, counted_destroy, context)
CUSLICE_HOOK_FORM(cuCtxDestroy_v2, counted_destroy, context)

CUSLICE_HOOK(cuCtxAttach, context, flags) {
    const CUresult result = CUSLICE_REAL(cuCtxAttach)(context, flags);
    if (result == CUDA_SUCCESS)
        gpu_state().contexts.attached(*context);
    return result;
}

CUSLICE_HOOK(cuCtxDetach, context) {
    const auto detach = CUSLICE_REAL(cuCtxDetach);
    CUresult result = CUDA_SUCCESS;
    return detached_one_of_several(context, detach, &result) ? result : counted_destroy(detach, context);
}

namespace {

// How many blocks of this limit's size the driver makes room for: one heap or print buffer, or a stack for each thread
// that can be resident on the GPU, which an H200's driver takes at once (docs/results/). 0: the limit is no size.
uint64_t times_held(const VirtualGpu& gpu, CUlimit limit) {
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE)
        return 1;
    if (limit != CU_LIMIT_STACK_SIZE)
        return 0;
    int threads = 0, multiprocessors = 0;
    CUSLICE_REAL(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, gpu.device());
    CUSLICE_REAL(cuDeviceGetAttribute)(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device());
    return static_cast<uint64_t>(threads) * static_cast<uint64_t>(multiprocessors);
}

// The largest number where it overflows.
uint64_t product(uint64_t bytes, uint64_t times) {
    uint64_t all = 0;
    return __builtin_mul_overflow(bytes, times, &all) ? ~0ull : all;
}

}  // namespace

// Stacks, heaps and print buffers are sized by this, and the driver makes room for them at once or at the next launch.
CUSLICE_HOOK(cuCtxSetLimit, limit, value) {
    const HookEntry entry;
    VirtualGpu* const gpu = current_gpu(entry);
    size_t before = 0;
    const bool known = CUSLICE_REAL(cuCtxGetLimit)(&before, limit) == CUDA_SUCCESS;
    return counted_step(
        Function::cuCtxSetLimit, gpu, [&] { return CUSLICE_REAL(cuCtxSetLimit)(limit, value); },
        [&] {
            if (known)
                CUSLICE_REAL(cuCtxSetLimit)(limit, before);
        },
        gpu && known && value > before ? product(value - before, times_held(*gpu, limit)) : 0);
}

}  // namespace cuslice
