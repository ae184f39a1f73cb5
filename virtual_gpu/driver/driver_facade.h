// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// Handle of the facade that lends its name, libcuda.so, to the preloaded library; null where there is none beside it.
// Loaded at the first call, and then for good: before that only code that the loader brought in at the program's start
// could ask for the name, and it would have to be linked to a driver without a SONAME. Keeps errno.
void* driver_facade();

}  // namespace cuslice
