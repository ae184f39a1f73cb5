// cuArray*, cuMipmappedArray*: arrays of a virtual GPU end with their context.
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/register_handle.h"

namespace cuslice {

namespace {

template <typename Call>
CUresult make_array(CUarray* array, Call call) {
    return make_registered(HandleKind::array, array, call, [](CUarray made) {
        CUSLICE_PHYSICAL(cuArrayDestroy)(made);
    });
}

}  // namespace

namespace split_driver {

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
    return destroy_registered(HandleKind::array, array, [&] { return CUSLICE_PHYSICAL(cuArrayDestroy)(array); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* form, unsigned levels) {
    return make_registered(
        HandleKind::mipmap, array, [&] { return CUSLICE_PHYSICAL(cuMipmappedArrayCreate)(array, form, levels); },
        [](CUmipmappedArray made) {
            CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)
            (made);
        });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    return destroy_registered(HandleKind::mipmap, array,
                              [&] { return CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)(array); });
}

}  // namespace split_driver

}  // namespace cuslice
