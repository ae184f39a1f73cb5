// SPDX-License-Identifier: Apache-2.0
// cuArray*, cuMipmappedArray*: arrays of a virtual GPU end with their context.
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/register_handle.h"

namespace cuslice {

namespace {

constexpr auto create = [](auto call, CUarray* array, const auto* form) {
    return make_registered(
        HandleKind::array, array, [&](CUarray* made) { return call(made, form); }, CUSLICE_PHYSICAL(cuArrayDestroy));
};

}  // namespace

namespace split_driver {

CUSLICE_SPLIT_FORM(cuArrayCreate, create, array, form)
CUSLICE_SPLIT_FORM(cuArrayCreate_v2, create, array, form)
CUSLICE_SPLIT_FORM(cuArray3DCreate, create, array, form)
CUSLICE_SPLIT_FORM(cuArray3DCreate_v2, create, array, form)

CUSLICE_SPLIT(cuArrayDestroy, array) {
    return destroy_registered(HandleKind::array, array, [&] { return CUSLICE_PHYSICAL(cuArrayDestroy)(array); });
}

CUSLICE_SPLIT(cuMipmappedArrayCreate, array, form, levels) {
    return make_registered(
        HandleKind::mipmap, array,
        [&](CUmipmappedArray* made) { return CUSLICE_PHYSICAL(cuMipmappedArrayCreate)(made, form, levels); },
        CUSLICE_PHYSICAL(cuMipmappedArrayDestroy));
}

CUSLICE_SPLIT(cuMipmappedArrayDestroy, array) {
    return destroy_registered(HandleKind::mipmap, array,
                              [&] { return CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)(array); });
}

}  // namespace split_driver

}  // namespace cuslice
