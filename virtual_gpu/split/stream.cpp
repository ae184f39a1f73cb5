// cuStream*: streams of a virtual GPU end with their context.
#include "virtual_gpu/split/stream.h"

#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/register_handle.h"

namespace cuslice {

namespace {

template <typename Call>
CUresult make_stream(CUstream* stream, Call call) {
    return make_registered(HandleKind::stream, stream, call, [](CUstream made) {
        CUSLICE_PHYSICAL(cuStreamDestroy_v2)(made);
    });
}

CUcontext context_of(CUstream stream, CUcontext real) {
    const HandleOwner owner = handle_registry().find(stream, HandleKind::stream);
    if (!owner.known || !owner.context) return shown(real);
    if (VirtualContext* context = virtual_contexts().numbered(owner.context)) return context->handle();
    return shown(real);
}

}  // namespace

int device_of(CUstream stream) {
    const HandleOwner owner = handle_registry().find(stream, HandleKind::stream);
    return owner.known ? owner.device : CurrentVirtual::device();
}

namespace split_driver {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    return make_stream(stream, [&] { return CUSLICE_PHYSICAL(cuStreamCreate)(stream, flags); });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    return make_stream(stream, [&] { return CUSLICE_PHYSICAL(cuStreamCreateWithPriority)(stream, flags, priority); });
}

CUresult cuStreamDestroy(CUstream stream) {
    return destroy_registered(HandleKind::stream, stream, [&] { return CUSLICE_PHYSICAL(cuStreamDestroy)(stream); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    return destroy_registered(HandleKind::stream, stream, [&] { return CUSLICE_PHYSICAL(cuStreamDestroy_v2)(stream); });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
    const CUresult result = CUSLICE_PHYSICAL(cuStreamGetCtx)(stream, context);
    if (result == CUDA_SUCCESS) *context = context_of(stream, *context);
    return result;
}

CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* context) {
    const CUresult result = CUSLICE_PHYSICAL(cuStreamGetCtx_ptsz)(stream, context);
    if (result == CUDA_SUCCESS) *context = context_of(stream, *context);
    return result;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
    const CUresult result = CUSLICE_PHYSICAL(cuStreamGetCtx_v2)(stream, context, green);
    if (result == CUDA_SUCCESS && *context) *context = context_of(stream, *context);
    return result;
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext* context, CUgreenCtx* green) {
    const CUresult result = CUSLICE_PHYSICAL(cuStreamGetCtx_v2_ptsz)(stream, context, green);
    if (result == CUDA_SUCCESS && *context) *context = context_of(stream, *context);
    return result;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
    const CUresult result = CUSLICE_PHYSICAL(cuStreamGetDevice)(stream, device);
    if (result == CUDA_SUCCESS) *device = device_of(stream);
    return result;
}

CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice* device) {
    const CUresult result = CUSLICE_PHYSICAL(cuStreamGetDevice_ptsz)(stream, device);
    if (result == CUDA_SUCCESS) *device = device_of(stream);
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
