// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace cuslice {

class PathBuffer;

// Where open_real_library found what no search was needed for; the rest is in search_path.h.
inline constexpr const char* kAsAsked = "at the path that was asked for";
inline constexpr const char* kLoaded = "loaded already";

// Opens a library of NVIDIA's (or of the fake GPU) that carries the name which the preloaded library has borrowed, so
// that asking the loader by that name would answer with ourselves. It is the one that the loader would have taken:
//   1. at `explicit_path`, and nowhere else, if it is given;
//   2. one that is loaded already, as by LD_PRELOAD;
//   3. what the first dlopen would have brought (remember_opening);
//   4. where the objects look that need it by name, and at last the program: visit_candidates.
// A candidate that exports `cuslice_marker` is ourselves, or another copy, and is passed over. Returns the handle and
// writes its path, or returns null and writes why; `where` says how it was found. Opening runs the library's
// constructors, as it would without cuslice. Safe from any thread; errno is kept.
void* open_real_library(const char* soname, const char* explicit_path, char* path_or_reason, size_t size,
                        const char** where = nullptr);

// A program opens the library by a name or a path, and gets ours. Remembers which file it would have got: a path that
// is there, or what the caller's own search path leads to. The first one counts, as the loader keeps what it has. errno
// is kept.
void remember_opening(const char* soname, const char* name, const void* caller);

// True for a file that the loader would take: a shared object for this machine.
bool is_library(const char* path);

// The path of the library of this name that open_real_library has opened; false if it hasn't yet.
bool opened_as(const char* soname, PathBuffer& path);

// True for an address in a library that open_real_library has opened, or in another file of the driver or of NVML: on
// WSL2 the libraries that programs open are loaders, which open the real ones under the same names. True for every
// address while this thread opens one; and while it starts one (StartingReal), for one in a library with a dlopen of
// its own, such as a sanitizer's runtime, through which the loader's call came.
bool in_real_library(const void* address);

// Stands around a call that initialises the real driver or NVML, in which they open their second stage.
class StartingReal {
  public:
    StartingReal();
    ~StartingReal();
    StartingReal(const StartingReal&) = delete;
    StartingReal& operator=(const StartingReal&) = delete;

  private:
    bool outer_;
};

// Another copy of this library, as from two installations in LD_PRELOAD. Its functions are not called: ours come first
// in the loader's order. Writes its path; false if there is none.
bool find_other_copy(char* path, size_t size);

// A library of this SONAME that was opened without a call of our dlopen, as by code that was itself opened with
// RTLD_DEEPBIND. Whoever uses it directly is not limited. Writes its path; false if there is none.
bool find_opened_past_us(const char* soname, char* path, size_t size);

}  // namespace cuslice
