#include "cli/open_library.h"

#include <dlfcn.h>

namespace cuslice::cli {

void* open_library(const std::string& file) {
    const int flags = RTLD_NOW | RTLD_LOCAL;
    if (::dlsym(RTLD_DEFAULT, "cuslice_marker") == nullptr) return ::dlopen(file.c_str(), flags);
    const bool path = file.find('/') != file.npos;
    return ::dlmopen(path ? LM_ID_BASE : LM_ID_NEWLM, file.c_str(), flags);
}

}  // namespace cuslice::cli
