// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// Exported by this library and by other copies of it.
inline constexpr char kMarker[] = "cuslice_marker";
// An address in this library.
extern const void* const kOwnPlace;

// The dlopen that would be called if the preloaded library had none: the C library's, or another interposer's.
using DlopenFunction = void* (*)(const char*, int);
DlopenFunction real_dlopen();
// The function that would be called by this name if the preloaded library had none; null if there is none.
void* next_function(const char* name);
// As real_dlopen(), for a library that was loaded behind the dlopen that calls it.
void set_real_dlopen(DlopenFunction function);

}  // namespace cuslice
