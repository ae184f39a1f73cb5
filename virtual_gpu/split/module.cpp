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
    return destroy_registered(HandleKind::module, module, [&] { return CUSLICE_PHYSICAL(cuModuleUnload)(module); });
}

}  // namespace split_driver

}  // namespace cuslice
