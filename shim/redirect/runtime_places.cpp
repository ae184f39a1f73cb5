// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/runtime_places.h"

#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>

// A newer one follows links that lead nowhere, and is asked for from glibc 2.27 on.
#if defined(__x86_64__)
__asm__(".symver glob, glob@GLIBC_2.2.5");
#else
__asm__(".symver glob, glob@GLIBC_2.17");
#endif

namespace cuslice {

namespace {

// A folder with libraries in it, below one that may be unknown; * stands for any version or processor.
struct Place {
    std::string_view start;  // empty: unknown
    std::string_view folder;
};

std::string_view variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

// The folder of packages that a module lies in, however deep; empty if there is none.
std::string_view packages_of(std::string_view module) {
    for (const std::string_view name : {"/site-packages/", "/dist-packages/"})
        if (const size_t at = module.rfind(name); at != module.npos)
            return slice(module, 0, at + name.size() - 1);
    return {};
}

bool any_in(const Place& place, std::string_view soname, VisitRuntime visit, void* argument) {
    FixedText<4096> pattern;
    pattern.append(place.start, "/", place.folder, "/", soname);
    if (place.start.empty() || pattern.cut())
        return false;
    glob_t found{};
    const bool any = glob(pattern.c_str(), 0, nullptr, &found) == 0;
    const std::span paths(found.gl_pathv, any ? found.gl_pathc : 0);
    const bool taken = std::any_of(paths.begin(), paths.end(), [&](const char* path) { return visit(path, argument); });
    globfree(&found);
    return taken;
}

}  // namespace

FixedText<32> soname_of_runtime(int major) {
    FixedText<32> soname;
    soname.assign("libcudart.so.", major);
    return soname;
}

void explain_missing_runtime(int major, Reason& why) {
    why.assign("there is no ", soname_of_runtime(major), " here, which NVIDIA's toolkit has, and the package ",
               major == 12 ? "nvidia-cuda-runtime-cu12" : "nvidia-cuda-runtime",
               " (pip install); or name one with --runtime FILE");
}

// Where NVIDIA's installers, conda and the packages of the Python index put it (2026).
bool any_runtime_elsewhere(int major, const char* module, VisitRuntime visit, void* argument) {
    const std::string_view package = major == 12 ? "nvidia/cuda_runtime/lib" : "nvidia/cu13/lib";
    FixedText<64> in_environment;
    in_environment.assign("lib/python3*/site-packages/", package);
    const Place places[] = {
        {packages_of(module ? module : ""), package},
        {variable("CUDA_HOME"), "lib64"},
        {variable("CUDA_PATH"), "lib64"},
        {"/usr/local/cuda", "lib64"},
        {"/usr/local/cuda", "targets/*-linux/lib"},
        {"/usr/local", major == 12 ? "cuda-12*/lib64" : "cuda-13*/lib64"},
        {variable("VIRTUAL_ENV"), in_environment},
        {variable("CONDA_PREFIX"), "lib"},
    };
    const FixedText<32> soname = soname_of_runtime(major);
    return std::any_of(std::begin(places), std::end(places),
                       [&](const Place& place) { return any_in(place, soname, visit, argument); });
}

}  // namespace cuslice
