// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/runtime_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "shim/redirect/runtime_places.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice {

namespace {

constexpr std::string_view kShim = "/libcuslice-runtime.so";

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

void RuntimeLibrary::begin(int major) {
    soname_ = soname_of_runtime(major);
    shim_ = loaded_shim();
}

bool RuntimeLibrary::open(int major, Fits fits, void* argument, Reason& why) {
    begin(major);
    const Judge judge{fits, argument, why};
    const char* const named = std::getenv("CUSLICE_RUNTIME");
    const bool found = named && *named ? open_named(named, judge) : open_found(major, judge);
    if (!found && why.empty())
        explain_missing_runtime(major, why);
    return found;
}

bool RuntimeLibrary::open_file(int major, const char* path, Fits fits, void* argument) {
    begin(major);
    Reason why;
    return take(path, {fits, argument, why});
}

bool RuntimeLibrary::open_named(const char* path, const Judge& judge) {
    const bool taken = take(path, judge);
    if (!taken && judge.why.empty())
        judge.why.assign("CUSLICE_RUNTIME: ", path, ": can't be loaded, or is no ", soname_,
                         ", which the program's own would be");
    return taken;
}

bool RuntimeLibrary::open_found(int major, const Judge& judge) {
    return take(soname_.c_str(), judge) ||
           any_runtime_elsewhere(major, nullptr, [&](const char* path) { return take(path, judge); });
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
