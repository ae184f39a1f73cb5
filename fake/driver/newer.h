// SPDX-License-Identifier: Apache-2.0
#pragma once
// Made-up functions that "a newer driver" has; there only with
// CUSLICE_FAKE_NEWER=1 or a driver of CUDA 13.1. With them it can be tested
// what a program gets of a driver that knows more than the code in between.

#include <span>

#include "fake/driver/exported_functions.h"

namespace cuslice::fake {

/// True if there are such functions.
bool newer_driver();

/// cuFakeNewerDriverFunction(int*), version 13000: writes 20130 to where its argument points; and forms of cuMemAlloc
/// and cuMemcpyDtoD from version 14000 on, which do what their _v2 forms do; cuStreamBeginFakeRecapture, which begins a
/// capture as cuStreamBeginCapture_v2 does; and cuLaunchFakeKernel, which launches one thread of a kernel.
std::span<const Exported> newer_functions();

}  // namespace cuslice::fake
