// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/export_table_asker.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <mutex>
#include <set>
#include <string>

#include "fake/driver/log.h"

namespace cuslice::fake {
namespace {

/// Beginnings of file names: what works without the tables.
constexpr const char* kContent[] = {"libnvrtc",         "libnvJitLink", "libnvvm",
                                    "libnvptxcompiler", "libcuda.so",   "libnvidia-"};

bool works_without(const std::string& path) {
    const std::string file = path.substr(path.rfind('/') + 1);
    for (const char* start : kContent)
        if (file.rfind(start, 0) == 0)
            return true;
    return false;
}

/// Where the program itself is loaded.
const void* program() {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(getauxval(AT_PHDR)), &info);
    return info.dli_fbase;
}

/// True at the first call for this module.
bool first(const void* module) {
    static constinit std::mutex lock;
    static auto* said = new std::set<const void*>;
    const std::lock_guard hold(lock);
    return said->insert(module).second;
}

}  // namespace

void log_who_asked(const void* caller) {
    Dl_info info{};
    const bool known = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
    if (!first(info.dli_fbase))
        return;
    if (!known || info.dli_fbase == program()) {
        log_line(
            "a program that carries NVIDIA's own (static) CUDA runtime can't start on the fake GPU; start it with "
            "cuslice run --redirect-runtime=program, or link the shared runtime instead: nvcc -cudart shared "
            "(NVCC_APPEND_FLAGS=\"-cudart shared\" make), or CUDA_RUNTIME_LIBRARY Shared in CMake");
    } else if (!works_without(info.dli_fname)) {
        log_line(
            std::string(info.dli_fname) +
            " carries NVIDIA's own CUDA runtime, which needs a GPU; cuslice run --redirect-runtime=all leads it to "
            "the fake GPU's, unless it is stripped of its symbol table (docs/fake-gpu.md)");
    }
}

}  // namespace cuslice::fake
