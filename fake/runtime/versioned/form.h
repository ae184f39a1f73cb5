// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/forward.h"

// CUSLICE_CUDART_VERSION, 11080, 12090 or 13000, is the CUDA version of the library that is built. NVIDIA's header,
// which is the one of 13.0, declares the forms of 13; where an older one has another, ours carries a name of its own in
// C++ and NVIDIA's in the object file, so that both can be seen in one translation unit. What 11 and 12 have alike is
// 12's below: what 12 alone has isn't exported by the library of 11 (exports.def).

/// Gives the function being declared NVIDIA's name in the object file.
#define CUSLICE_EXPORT_AS(name) __asm__(#name)

/// The same for a function on a stream: with _ptsz where the translation unit is the per-thread one.
#ifdef __CUDA_API_PER_THREAD_DEFAULT_STREAM
#define CUSLICE_EXPORT_STREAM_AS(name) __asm__(#name "_ptsz")
#else
#define CUSLICE_EXPORT_STREAM_AS(name) __asm__(#name)
#endif
