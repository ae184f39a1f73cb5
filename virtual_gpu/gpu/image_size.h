// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

// How many bytes of the GPU the variables of a module take at least, as its image says: a cubin's symbols, the parts of
// a fat binary that aren't compressed, or PTX's declarations. 0 where that can't be told. Code, padding and what the
// driver adds come on top. The image is the program's and may be anything: it is read so that nothing in it can end the
// process.
uint64_t least_size_of_image(const void* image);
uint64_t least_size_of_image_file(const char* path);

}  // namespace cuslice
