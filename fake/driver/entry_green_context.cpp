// SPDX-License-Identifier: Apache-2.0
// Green contexts, and the resources that they are made of.

#include "fake/driver/api_prologue.h"
#include "fake/driver/event.h"
#include "fake/driver/green_context.h"
#include "fake/driver/primary_context.h"
#include "fake/driver/sm_resource.h"
#include "fake/driver/state.h"
#include "fake/driver/stream.h"

using namespace cuslice::fake;

namespace {

unsigned all_of(const Gpu& gpu) { return static_cast<unsigned>(gpu.spec.multiprocessors); }

CUresult create(Gpu& gpu, unsigned multiprocessors, CUgreenCtx& out) {
    const DriverLock hold;
    CUSLICE_FIND(Context, primary, retain_primary(gpu, primary));
    const CUresult result = create_green(*primary, multiprocessors, out);
    // Made just now, or somebody else's: nothing of ours runs in it.
    if (result != CUDA_SUCCESS)
        release_primary(gpu);
    return result;
}

CUresult destroy(CUgreenCtx handle) {
    const Green* green = find_green(handle);
    if (green == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (live_green(handle)) {
        for (const WorkQueue::Mark& mark : work_of(*green->name->base, handle))
            WorkQueue::wait(mark);
    }
    drain_primary(*green->gpu, true);
    const DriverLock hold;
    if ((green = find_green(handle)) == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    const Gpu& gpu = *green->gpu;
    destroy_green(handle);
    release_primary(gpu);  // the program may have released it more often than it retained it
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuDeviceGetDevResource, device, out, type) {
    CUSLICE_FIND(const Gpu, gpu, find_gpu(device, gpu));
    return give_resource(gpu->spec, device, all_of(*gpu), type, out);
}

CUSLICE_ENTRY(cuCtxGetDevResource, handle, out, type) {
    const Context* name = live_name(handle);
    if (name == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    const Gpu& gpu = *name->gpu;
    const Green* green = find_green(name->green);
    return give_resource(gpu.spec, gpu.ordinal, green == nullptr ? all_of(gpu) : green->multiprocessors, type, out);
}

CUSLICE_ENTRY(cuGreenCtxGetDevResource, handle, out, type) {
    const Green* green = find_green(handle);
    if (green == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    return give_resource(green->gpu->spec, green->gpu->ordinal, green->multiprocessors, type, out);
}

CUSLICE_ENTRY(cuDevSmResourceSplitByCount, result, groups, input, remaining, flags, least) {
    constexpr unsigned kFine = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
    constexpr unsigned kClusters = CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    if (groups == nullptr || input == nullptr || (flags & ~(kFine | kClusters)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & kClusters) != 0)
        CUSLICE_UNSUPPORTED("CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE");
    int ordinal = 0;
    CUSLICE_TRY(resource_gpu(*input, ordinal));
    CUSLICE_FIND(const Gpu, gpu, find_gpu(ordinal, gpu));
    return split_resource(gpu->spec, result, *groups, *input, remaining, flags == kFine, least);
}

CUSLICE_ENTRY(cuDevResourceGenerateDesc, out, resources, count) {
    if (out == nullptr || resources == nullptr || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return describe_resources(resources, count, *out);
}

CUSLICE_ENTRY(cuGreenCtxCreate, out, handle, device, flags) {
    const ResourceDescription* description = descriptions.find(handle);
    if (out == nullptr || description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    if (description->ordinal != device)
        return CUDA_ERROR_INVALID_VALUE;
    return create(*gpu, description->multiprocessors, *out);
}

CUSLICE_ENTRY(cuGreenCtxDestroy, handle) { return destroy(handle); }

CUSLICE_ENTRY(cuCtxFromGreenCtx, out, handle) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const Green* green = find_green(handle);
    if (green == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = green->name->handle;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGreenCtxStreamCreate, out, handle, flags, priority) {
    if (out == nullptr || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    const Context* name = name_of_green(handle);
    if (name == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = create_stream(*name, flags, priority);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuStreamGetGreenCtx, handle, out) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, DefaultStream::Legacy);
    *out = stream->green;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGreenCtxGetId, handle, id) {
    if (id == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const Context* name = handle == nullptr ? live_name(current_handle) : name_of_green(handle);
    if (name == nullptr || name->green == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = name->number;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGreenCtxRecordEvent, green, event) { return record_in(name_of_green(green), events.find(event)); }

CUSLICE_ENTRY(cuGreenCtxWaitEvent, green, event) { return wait_in(name_of_green(green), events.find(event)); }
