// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/registry.h"

namespace cuslice::fake {

/// PTX that has the names of what a binary registered: an entry for each kernel (without a parameter list, which
/// nobody told), a global of the right size for each variable. Initial values are not known and are zero. It is for
/// GPUs of compute capability `capability` (75 is 7.5), as the program's own code is. Free with std::free; null: no
/// host memory. Holds Lock.
///
/// The body of each kernel is a trap: on a driver that does run kernels such a module fails loudly, instead of doing
/// nothing with success.
char* synthesize_ptx(const Binary& binary, int capability);

}  // namespace cuslice::fake
