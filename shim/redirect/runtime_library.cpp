// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/runtime_library.h"

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/real_dlopen.h"

// A newer one follows links that lead nowhere, and is asked for from glibc 2.27 on.
#if defined(__x86_64__)
__asm__(".symver glob, glob@GLIBC_2.2.5");
#else
__asm__(".symver glob, glob@GLIBC_2.17");
#endif

namespace cuslice {

namespace {

constexpr std::string_view kShim = "/libcuslice-runtime.so";

// A folder with libraries in it, below one that may be unknown; * stands for any version or processor.
struct Place {
    const char* start;  // null or empty: unknown
    const char* folder;
};

void* loaded_shim() {
    FixedText<4096> path;
    any_object([&](const LoadedObject& object) {
        const bool is_shim = std::string_view(object.path()).ends_with(kShim);
        if (is_shim)
            path.assign(object.path());
        return is_shim;
    });
    return path.empty() ? nullptr : real_dlopen()(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

bool RuntimeLibrary::open(int major, Fits fits, void* argument, Reason& why) {
    major_ = major;
    soname_.assign("libcudart.so.", major);
    shim_ = loaded_shim();
    const Judge judge{fits, argument, why};
    const char* const named = std::getenv("CUSLICE_RUNTIME");
    const bool found = named && *named ? open_named(named, judge) : open_found(judge);
    if (!found && why.empty())
        why.assign("there is no ", soname_, " here, which NVIDIA's toolkit has, and the package ",
                   major == 12 ? "nvidia-cuda-runtime-cu12" : "nvidia-cuda-runtime",
                   " (pip install); or name one with --runtime FILE");
    return found;
}

bool RuntimeLibrary::open_named(const char* path, const Judge& judge) {
    const bool taken = take(path, judge);
    if (!taken && judge.why.empty())
        judge.why.assign("CUSLICE_RUNTIME: ", path, ": can't be loaded, or is no ", soname_,
                         ", which the program's own would be");
    return taken;
}

// Where NVIDIA's installers, conda and the packages of the Python index put it (2026).
bool RuntimeLibrary::open_found(const Judge& judge) {
    const Place places[] = {
        {std::getenv("CUDA_HOME"), "lib64"},
        {std::getenv("CUDA_PATH"), "lib64"},
        {"/usr/local/cuda", "lib64"},
        {"/usr/local/cuda", "targets/*-linux/lib"},
        {"/usr/local", major_ == 12 ? "cuda-12*/lib64" : "cuda-13*/lib64"},
        {std::getenv("VIRTUAL_ENV"), major_ == 12 ? "lib/python3*/site-packages/nvidia/cuda_runtime/lib"
                                                  : "lib/python3*/site-packages/nvidia/cu13/lib"},
        {std::getenv("CONDA_PREFIX"), "lib"},
    };
    const auto has_it = [&](const Place& place) { return take_in(place.start, place.folder, judge); };
    return take(soname_.c_str(), judge) || std::any_of(std::begin(places), std::end(places), has_it);
}

bool RuntimeLibrary::take_in(const char* start, const char* folder, const Judge& judge) {
    FixedText<4096> pattern;
    pattern.append(std::string_view(start ? start : ""), "/", std::string_view(folder), "/", soname_);
    if (!start || !*start || pattern.cut())
        return false;
    glob_t found{};
    const bool any = glob(pattern.c_str(), 0, nullptr, &found) == 0;
    const std::span paths(found.gl_pathv, any ? found.gl_pathc : 0);
    const auto fits = [&](const char* path) { return take(path, judge); };
    const bool taken = std::any_of(paths.begin(), paths.end(), fits);
    globfree(&found);
    return taken;
}

// A library of another major version has another name, whatever its file is called.
bool RuntimeLibrary::take(const char* path, const Judge& judge) {
    void* const handle = real_dlopen()(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    runtime_ = object_of(handle);
    path_.assign(runtime_.path());
    if (std::string_view(runtime_.soname()) == soname_.view() && judge.fits(functions(), judge.argument, judge.why))
        return true;
    Libdl::dlclose(handle);
    return false;
}

// Only what the runtime itself exports is a runtime's: the shim's own names are the same.
void* RuntimeLibrary::find(const char* name, void* argument) {
    auto& self = *static_cast<RuntimeLibrary*>(argument);
    void* const own = self.runtime_.find(name);
    if (!own || !self.shim_)
        return own;
    void* const before = Libdl::dlvsym(self.shim_, name, self.soname_.c_str());
    return before ? before : own;
}

}  // namespace cuslice
