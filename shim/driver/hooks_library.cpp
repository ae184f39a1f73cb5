// SPDX-License-Identifier: Apache-2.0
// Libraries: modules that the driver loads into each context when something of them is used.
#include "shim/driver/counted_code.h"
#include "shim/driver/export.h"

namespace cuslice {

// A library may place its variables only when something of it is used.
CUSLICE_HOOK(cuLibraryLoadData, library, code, jit_options, jit_values, jit_count, options, values, count) {
    return counted_load(CUSLICE_REAL(cuLibraryLoadData), CUSLICE_REAL(cuLibraryUnload), least_size_of_image, library,
                        code, jit_options, jit_values, jit_count, options, values, count);
}

CUSLICE_HOOK(cuLibraryLoadFromFile, library, file, jit_options, jit_values, jit_count, options, values, count) {
    return counted_load(CUSLICE_REAL(cuLibraryLoadFromFile), CUSLICE_REAL(cuLibraryUnload), least_size_of_image_file,
                        library, file, jit_options, jit_values, jit_count, options, values, count);
}

CUSLICE_HOOK(cuLibraryGetKernel, kernel, library, name) {
    look_before_kernel();
    return CUSLICE_REAL(cuLibraryGetKernel)(kernel, library, name);
}

CUSLICE_HOOK_FORM(cuLibraryUnload, counted_unload, library)

}  // namespace cuslice
