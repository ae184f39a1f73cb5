// Streams, modules and arrays: the driver makes them in the real context, and they end with the virtual one.
#include "virtual_gpu/split/current.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/made.h"
#include "virtual_gpu/split/streams.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// A thing that the driver is to make in the current context.
template <typename Handle, typename Call, typename Destroy>
CUresult make(Made kind, Handle* handle, Call call, Destroy destroy) {
    const CUresult result = call();
    if (result != CUDA_SUCCESS) return result;
    const VirtualContexts::Meaning now = CurrentVirtual::get();
    if (made_things().add(*handle, kind, CurrentVirtual::device(),
                          now.context ? std::uint64_t{now.context->number} : 0))
        return result;
    destroy(*handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

// Its number may be another's as soon as the driver has it back.
template <typename Handle, typename Call>
CUresult unmake(Made kind, Handle handle, Call call) {
    const Maker maker = made_things().find(handle, kind);
    made_things().remove(handle, kind);
    const CUresult result = call();
    if (result != CUDA_SUCCESS && maker.known) made_things().add(handle, kind, maker.device, maker.context);
    return result;
}

template <typename Call>
CUresult make_stream(CUstream* stream, Call call) {
    return make(Made::stream, stream, call, [](CUstream made) { CUSLICE_PHYSICAL(cuStreamDestroy_v2)(made); });
}

template <typename Call>
CUresult make_module(CUmodule* module, Call call) {
    return make(Made::module, module, call, [](CUmodule made) { CUSLICE_PHYSICAL(cuModuleUnload)(made); });
}

template <typename Call>
CUresult make_array(CUarray* array, Call call) {
    return make(Made::array, array, call, [](CUarray made) { CUSLICE_PHYSICAL(cuArrayDestroy)(made); });
}

CUcontext context_of(CUstream stream, CUcontext real) {
    const Maker maker = made_things().find(stream, Made::stream);
    if (!maker.known || !maker.context) return shown(real);
    if (VirtualContext* context = virtual_contexts().numbered(maker.context)) return context->handle();
    return shown(real);
}

}  // namespace

int device_of(CUstream stream) {
    const Maker maker = made_things().find(stream, Made::stream);
    return maker.known ? maker.device : CurrentVirtual::device();
}

namespace split_driver {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    return make_stream(stream, [&] { return CUSLICE_PHYSICAL(cuStreamCreate)(stream, flags); });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    return make_stream(stream, [&] { return CUSLICE_PHYSICAL(cuStreamCreateWithPriority)(stream, flags, priority); });
}

CUresult cuStreamDestroy(CUstream stream) {
    return unmake(Made::stream, stream, [&] { return CUSLICE_PHYSICAL(cuStreamDestroy)(stream); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    return unmake(Made::stream, stream, [&] { return CUSLICE_PHYSICAL(cuStreamDestroy_v2)(stream); });
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

CUresult cuModuleLoad(CUmodule* module, const char* file) {
    return make_module(module, [&] { return CUSLICE_PHYSICAL(cuModuleLoad)(module, file); });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return make_module(module, [&] { return CUSLICE_PHYSICAL(cuModuleLoadData)(module, image); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
    return make_module(module,
                       [&] { return CUSLICE_PHYSICAL(cuModuleLoadDataEx)(module, image, count, options, values); });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fat) {
    return make_module(module, [&] { return CUSLICE_PHYSICAL(cuModuleLoadFatBinary)(module, fat); });
}

CUresult cuModuleUnload(CUmodule module) {
    return unmake(Made::module, module, [&] { return CUSLICE_PHYSICAL(cuModuleUnload)(module); });
}

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* form) {
    return make_array(array, [&] { return CUSLICE_PHYSICAL(cuArrayCreate)(array, form); });
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* form) {
    return make_array(array, [&] { return CUSLICE_PHYSICAL(cuArrayCreate_v2)(array, form); });
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* form) {
    return make_array(array, [&] { return CUSLICE_PHYSICAL(cuArray3DCreate)(array, form); });
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* form) {
    return make_array(array, [&] { return CUSLICE_PHYSICAL(cuArray3DCreate_v2)(array, form); });
}

CUresult cuArrayDestroy(CUarray array) {
    return unmake(Made::array, array, [&] { return CUSLICE_PHYSICAL(cuArrayDestroy)(array); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* form, unsigned levels) {
    return make(
        Made::mipmap, array, [&] { return CUSLICE_PHYSICAL(cuMipmappedArrayCreate)(array, form, levels); },
        [](CUmipmappedArray made) {
            CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)
            (made);
        });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    return unmake(Made::mipmap, array, [&] { return CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)(array); });
}

}  // namespace split_driver

}  // namespace cuslice
