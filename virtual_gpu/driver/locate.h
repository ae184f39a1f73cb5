#pragma once
#include <cstddef>

namespace cuslice {

// Opens a library of NVIDIA's (or of the fake GPU) that carries the name which the preloaded library has borrowed, so
// that asking the loader by that name would answer with ourselves. Looks, in this order,
//   1. at `explicit_path`, and nowhere else, if it is given;
//   2. in the directories that the loader would search for the program (its RPATH or RUNPATH, LD_LIBRARY_PATH, the
//   defaults);
//   3. in the loader's cache.
// A candidate that exports `cuslice_marker` is ourselves, or another copy, and is passed over. Returns the handle and
// writes its path, or returns null and writes why. Opening runs the library's constructors, as it would without
// cuslice. Safe from any thread; errno is kept.
void* open_real_library(const char* soname, const char* explicit_path, char* path_or_reason, std::size_t size);

// The C library's own dlopen, which the preloaded library stands before.
using DlopenFunction = void* (*)(const char*, int);
DlopenFunction real_dlopen();

// The folder that holds the module with this address in it, without a final slash. False if the loader doesn't know it.
bool folder_of(const void* address, char* folder, std::size_t size);

}  // namespace cuslice
