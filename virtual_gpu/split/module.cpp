// SPDX-License-Identifier: Apache-2.0
// cuModule*: modules of a virtual GPU end with their context.
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/register_handle.h"

namespace cuslice {

namespace {

template <typename Call>
CUresult make_module(CUmodule* module, Call call) {
    return make_registered(HandleKind::module, module, call, [](CUmodule made) {
        CUSLICE_PHYSICAL(cuModuleUnload)(made);
    });
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuModuleLoad, module, file) {
    return make_module(module, [&](CUmodule* made) { return CUSLICE_PHYSICAL(cuModuleLoad)(made, file); });
}

CUSLICE_SPLIT(cuModuleLoadData, module, image) {
    return make_module(module, [&](CUmodule* made) { return CUSLICE_PHYSICAL(cuModuleLoadData)(made, image); });
}

CUSLICE_SPLIT(cuModuleLoadDataEx, module, image, count, options, values) {
    return make_module(module, [&](CUmodule* made) {
        return CUSLICE_PHYSICAL(cuModuleLoadDataEx)(made, image, count, options, values);
    });
}

CUSLICE_SPLIT(cuModuleLoadFatBinary, module, fat) {
    return make_module(module, [&](CUmodule* made) { return CUSLICE_PHYSICAL(cuModuleLoadFatBinary)(made, fat); });
}

CUSLICE_SPLIT(cuModuleUnload, module) {
    return destroy_registered(HandleKind::module, module, [&] { return CUSLICE_PHYSICAL(cuModuleUnload)(module); });
}

}  // namespace split_driver

}  // namespace cuslice
