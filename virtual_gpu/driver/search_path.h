// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <span>

namespace cuslice {

// Where a candidate was found, in words that complete "found …".
inline constexpr const char* kInSearchPath = "in the search path";
inline constexpr const char* kInCache = "in the loader's cache";
inline constexpr const char* kInDefaults = "in a default folder";

// Called with each file that the loader would try, until it returns true.
using VisitCandidate = bool (*)(const char* path, const char* where, void* argument);

// The order in which the loader looks for a library: the folders of RPATH, LD_LIBRARY_PATH and RUNPATH, then its cache,
// then the default folders, which are the last `defaults` of `folders`. In each folder the subfolders of glibc-hwcaps
// that fit this CPU come first, the best one before the others, and among the cache's entries likewise. Reads the
// cache, and nothing else.
bool visit_candidates(std::span<const Dl_serpath> folders, size_t defaults, const char* cache_path, const char* name,
                      VisitCandidate visit, void* argument);

// The same for a library that the object with this handle opens or needs; null: the program. errno is kept.
bool visit_candidates(void* handle, const char* name, VisitCandidate visit, void* argument);

template <typename Visit>
bool visit_candidates(void* handle, const char* name, Visit visit) {
    const auto call = [](const char* path, const char* where, void* own) {
        return (*static_cast<Visit*>(own))(path, where);
    };
    return visit_candidates(handle, name, call, &visit);
}

}  // namespace cuslice
