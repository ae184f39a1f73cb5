// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/code_target.h"

namespace cuslice::fake {

/// Finds what a GPU of compute capability `capability` (75 is 7.5) takes of the device code that nvcc's host code
/// registers: only what its entries are for is looked at. False: none of it runs there. Anything but a fat binary of
/// nvcc's, and relocatable code, whose PTX is listed elsewhere, is taken to be for that very GPU. Thread-safe.
bool find_code(const void* device_code, int capability, Target* found);

}  // namespace cuslice::fake
