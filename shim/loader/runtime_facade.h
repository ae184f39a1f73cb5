// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// A program opens NVIDIA's runtime, by any name or path. Where GPUs are split and the runtime shim is loaded: the
// path of the facade that stands before that version (shim/runtime/facade_x86_64.S), with the real one loaded as
// `caller` would have got it. Otherwise the name itself, as where `flags` ask only whether it is loaded and it is not.
const char* runtime_facade(const char* name, const void* caller, int flags);

}  // namespace cuslice
