// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the library lies that this code is linked into.

#include <string>

namespace cuslice::fake {

/// The folder of the library (or program), absolute, without a slash at its end. The program may have changed its
/// folder since the library was found by a relative name, so the kernel is asked where the name isn't absolute.
std::string library_folder();

}  // namespace cuslice::fake
