// SPDX-License-Identifier: Apache-2.0
#include "shim/loader/runtime_facade.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "shim/runtime/split_view.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/own_folder.h"
#include "virtual_gpu/driver/real_dlopen.h"
#include "virtual_gpu/driver/search_path.h"

// The runtime shim, where it is loaded.
extern "C" __attribute__((weak)) void* cuslice_runtime_12[];

namespace cuslice {

namespace {

struct Facade {
    const char* soname;
    const char* file;
    std::atomic<int> state;  // 0: not asked yet, 1: loaded, 2: can't be
    char path[4096];
};
constinit Facade facades[] = {{"libcudart.so.11.0", "/libcuslice-cudart11.so", 0, {}},
                              {"libcudart.so.12", "/libcuslice-cudart12.so", 0, {}},
                              {"libcudart.so.13", "/libcuslice-cudart13.so", 0, {}}};

// The file that the loader would take for the caller, whose RUNPATH is no longer known to it when we open in its place.
void* open_where_caller_would(const char* name, const void* caller) {
    Dl_info where{};
    link_map* module = nullptr;
    if (!Libdl::dladdr1(caller, &where, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) || !module)
        return nullptr;
    void* handle = nullptr;
    visit_candidates(module, name, [&](const char* path, const char*) {
        handle = real_dlopen()(path, RTLD_LAZY);
        return handle != nullptr;
    });
    return handle;
}

// Kept loaded from then on, so that the facade's need of it is met by this very one.
void* open_real(const char* name, const void* caller) {
    void* handle = real_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle && !std::strchr(name, '/'))
        handle = open_where_caller_would(name, caller);
    return handle ? handle : real_dlopen()(name, RTLD_LAZY);
}

bool load(Facade& facade) {
    if (const int known = facade.state.load(std::memory_order_acquire))
        return known == 1;
    char path[sizeof(facade.path)];
    const bool known = path_in_own_folder(facade.file, path, sizeof(path));
    const bool loaded = known && real_dlopen()(path, RTLD_LAZY) != nullptr;
    if (loaded)
        std::memcpy(facade.path, path, sizeof(path));
    facade.state.store(loaded ? 1 : 2, std::memory_order_release);
    return loaded;
}

}  // namespace

const char* runtime_facade(const char* name, const void* caller, int flags) {
    if (!cuslice_runtime_12 || !cuslice_split_view())
        return name;
    const int saved_errno = errno;
    const char* result = name;
    void* real = flags & RTLD_NOLOAD ? real_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD) : open_real(name, caller);
    const LoadedObject object = object_of(real);
    for (Facade& facade : facades)
        if (std::strcmp(object.soname(), facade.soname) == 0 && load(facade))
            result = facade.path;
    errno = saved_errno;
    return result;
}

}  // namespace cuslice
