// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions that this library has and an older driver's hasn't: hidden from whoever looks them up by name.

namespace cuslice::fake {

/// Takes those symbols out of the dynamic symbol table of the library that this code is linked into for which `hidden`
/// says so: dlsym doesn't find them from then on. To be called while the library is loaded, before anybody has looked.
void hide_symbols(bool (*hidden)(const char* symbol));

}  // namespace cuslice::fake
