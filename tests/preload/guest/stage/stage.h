// SPDX-License-Identifier: Apache-2.0
// A library under one of NVIDIA's names that only leads on to another one, as the driver and NVML do on WSL2: programs
// open /usr/lib/wsl/lib/libcuda.so.1, which opens libcuda.so.1.1 in the driver store, and libnvidia-ml.so.1 the file of
// the same name there. Here the store is the folder GUEST_STORE, and GUEST_PREFIX stands before the names in it. With
// GUEST_STAGE=early the library opens it when it is loaded itself, else at the first call.
//
// For the fake GPU behind it GUEST_FAKE becomes CUSLICE_FAKE, which a test can't set itself where cuslice is to find
// the driver: it means the fake GPU beside the library.
#pragma once

#include <cstddef>

namespace guest {

/// Opens `file` in the store and fills the slots with its functions of these names.
void lead_on(const char* file, const char* const* names, void** slots, size_t count);
/// True if a library calls lead_on() as soon as it is loaded, rather than at the first call.
bool leads_early();

}  // namespace guest
