// SPDX-License-Identifier: Apache-2.0
// Modules: code and variables that the driver places on the GPU by itself.
#include "shim/driver/counted_code.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

constexpr auto load_module = [](auto load, CUmodule* module, const void* image, auto... arguments) {
    return counted_load(load, CUSLICE_REAL(cuModuleUnload), least_size_of_image, module, image, arguments...);
};

}  // namespace

CUSLICE_HOOK_FORM(cuModuleLoadData, load_module, module, image)
CUSLICE_HOOK_FORM(cuModuleLoadDataEx, load_module, module, image, count, options, values)
CUSLICE_HOOK_FORM(cuModuleLoadFatBinary, load_module, module, image)

CUSLICE_HOOK(cuModuleLoad, module, file) {
    return counted_load(CUSLICE_REAL(cuModuleLoad), CUSLICE_REAL(cuModuleUnload), least_size_of_image_file, module,
                        file);
}

CUSLICE_HOOK(cuModuleGetFunction, function, module, name) {
    look_before_kernel();
    return CUSLICE_REAL(cuModuleGetFunction)(function, module, name);
}

CUSLICE_HOOK_FORM(cuModuleUnload, counted_unload, module)

}  // namespace cuslice
