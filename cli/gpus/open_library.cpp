// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/open_library.h"

#include <dlfcn.h>

namespace cuslice::cli {
namespace {

using Dlmopen = decltype(&::dlmopen);

// The C library's own, which lay in libdl.so.2 before glibc 2.34: libcuslice.so stands before dlmopen too.
Dlmopen real_dlmopen() {
    for (const char* library : {"libc.so.6", "libdl.so.2"}) {
        void* const handle = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        void* const found = handle != nullptr ? ::dlsym(handle, "dlmopen") : nullptr;
        if (found != nullptr)
            return reinterpret_cast<Dlmopen>(found);
    }
    return ::dlmopen;
}

}  // namespace

void* open_library(const std::string& file) {
    const int flags = RTLD_NOW | RTLD_LOCAL;
    if (::dlsym(RTLD_DEFAULT, "cuslice_marker") == nullptr)
        return ::dlopen(file.c_str(), flags);
    const bool path = file.find('/') != file.npos;
    return real_dlmopen()(path ? LM_ID_BASE : LM_ID_NEWLM, file.c_str(), flags);
}

}  // namespace cuslice::cli
