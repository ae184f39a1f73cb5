// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace cuslice {

// The path of a file beside this library: "/libcuda.so", or "/fake/libcuda.so.1" below its folder. False, with an empty
// path, if the loader doesn't know the folder, or the path doesn't fit.
bool path_in_own_folder(const char* file, char* path, size_t size);

}  // namespace cuslice
