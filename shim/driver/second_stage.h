// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// Translates a function from the driver's cuGetProcAddress to the one that its library exports. They differ only on
// WSL2, where libcuda.so.1 leads on to a second library and may hand out that one's functions. An address that
// belongs to none of the functions that we know comes back as it is. After the driver was loaded; thread-safe.
void* exported_form(void* handed_out);

}  // namespace cuslice
