// SPDX-License-Identifier: Apache-2.0
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
    const VirtualContext* context = owner.context ? virtual_contexts().numbered(owner.context) : nullptr;
    return context ? context->handle() : to_virtual(real);
}

}  // namespace

int device_of(CUstream stream) {
    const HandleOwner owner = handle_registry().find(stream, HandleKind::stream);
    return owner.known ? owner.device : CurrentVirtual::device();
}

std::optional<int> current_priority() {
    const Split::Device* part = split().device(CurrentVirtual::device());
    return part ? part->part.priority : std::nullopt;
}

CUresult check_priority(const Split::Device& part, CUcontext real) {
    if (!part.part.priority)
        return CUDA_SUCCESS;
    CUresult result = CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(real);
    if (result != CUDA_SUCCESS)
        return result;
    int least = 0, greatest = 0;
    result = CUSLICE_PHYSICAL(cuCtxGetStreamPriorityRange)(&least, &greatest);
    CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&real);
    if (result != CUDA_SUCCESS)
        return result;
    // The most urgent is the lowest number.
    if (greatest <= *part.part.priority && *part.part.priority <= least)
        return CUDA_SUCCESS;
    split().on_bad_priority(part, least, greatest);
    return CUDA_ERROR_INVALID_VALUE;
}

namespace {

constexpr auto create = [](auto real, CUstream* stream, auto... how) {
    return make_stream(stream, [&](CUstream* made) { return real(made, how...); });
};
constexpr auto create_plain = [](auto real, CUstream* stream, unsigned flags) {
    const std::optional<int> priority = current_priority();
    return priority ? create(CUSLICE_PHYSICAL(cuStreamCreateWithPriority), stream, flags, *priority)
                    : create(real, stream, flags);
};
constexpr auto destroy = [](auto real, CUstream stream) {
    return destroy_registered(HandleKind::stream, stream, [&] { return real(stream); });
};
// The newer form answers null for the context of a green one.
constexpr auto get_context = [](auto real, CUstream stream, CUcontext* context, auto... green) {
    const CUresult result = real(stream, context, green...);
    if (result == CUDA_SUCCESS && (*context || !sizeof...(green)))
        *context = context_of(stream, *context);
    return result;
};
constexpr auto get_device = [](auto real, CUstream stream, CUdevice* device) {
    const CUresult result = real(stream, device);
    if (result == CUDA_SUCCESS)
        *device = device_of(stream);
    return result;
};

}  // namespace

namespace split_driver {

CUSLICE_SPLIT_FORM(cuStreamCreate, create_plain, stream, flags)
CUSLICE_SPLIT_FORM(cuStreamCreateWithPriority, create, stream, flags, priority)
CUSLICE_SPLIT_FORM(cuStreamDestroy, destroy, stream)
CUSLICE_SPLIT_FORM(cuStreamDestroy_v2, destroy, stream)
CUSLICE_SPLIT_FORM(cuStreamGetCtx, get_context, stream, context)
CUSLICE_SPLIT_FORM(cuStreamGetCtx_ptsz, get_context, stream, context)
CUSLICE_SPLIT_FORM(cuStreamGetCtx_v2, get_context, stream, context, green)
CUSLICE_SPLIT_FORM(cuStreamGetCtx_v2_ptsz, get_context, stream, context, green)
CUSLICE_SPLIT_FORM(cuStreamGetDevice, get_device, stream, device)
CUSLICE_SPLIT_FORM(cuStreamGetDevice_ptsz, get_device, stream, device)

}  // namespace split_driver

}  // namespace cuslice
