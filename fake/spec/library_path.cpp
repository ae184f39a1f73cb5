// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/library_path.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace cuslice::fake {
namespace {

/// The file that is mapped at an address.
std::string mapped_file(const void* address) {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr)
        return "";
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    std::string found;
    char line[8192];
    while (found.empty() && std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long start = 0, end = 0;
        const char* path = std::strchr(line, '/');
        if (path == nullptr || std::sscanf(line, "%lx-%lx", &start, &end) != 2 || wanted < start || wanted >= end)
            continue;
        found.assign(path, std::strcspn(path, "\n"));
    }
    std::fclose(maps);
    return found;
}

}  // namespace

std::string library_folder() {
    const void* here = reinterpret_cast<void*>(&library_folder);
    Dl_info info{};
    std::string path = dladdr(here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
    if (path.empty() || path[0] != '/')
        path = mapped_file(here);
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace cuslice::fake
