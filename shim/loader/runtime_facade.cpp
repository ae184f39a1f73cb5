#include "shim/loader/runtime_facade.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shim/runtime/split_view.h"
#include "virtual_gpu/driver/libc.h"
#include "virtual_gpu/driver/locate.h"

// The runtime's door, where it is loaded.
extern "C" __attribute__((weak)) void* cuslice_runtime_12[];

namespace cuslice {

namespace {

struct Facade {
    const char* soname;
    const char* file;
    std::atomic<int> state;  // 0: not asked yet, 1: loaded, 2: can't be
    char path[4096];
};
constinit Facade facades[] = {{"libcudart.so.12", "/libcuslice-cudart12.so", 0, {}},
                              {"libcudart.so.13", "/libcuslice-cudart13.so", 0, {}}};

const char* soname_of(const link_map* module) {
    const char* strings = nullptr;
    std::uint64_t name = 0;
    bool named = false;
    for (const ElfW(Dyn)* entry = module->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_SONAME) named = true, name = entry->d_un.d_val;
    }
    return named && strings ? strings + name : "";
}

// The directories in which the loader looks for what this module opens: its RUNPATH among them, which is no longer
// known to the loader when we open for it.
void* open_where_caller_would(const char* name, const void* caller) {
    Dl_info where{};
    link_map* module = nullptr;
    if (!dladdr1(caller, &where, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) || !module) return nullptr;
    Dl_serinfo size{};
    if (dlinfo(module, RTLD_DI_SERINFOSIZE, &size) != 0) return nullptr;
    auto* paths = static_cast<Dl_serinfo*>(std::malloc(size.dls_size));
    if (!paths) return nullptr;
    *paths = size;
    void* handle = nullptr;
    char path[4096];
    if (dlinfo(module, RTLD_DI_SERINFOSIZE, paths) == 0 && dlinfo(module, RTLD_DI_SERINFO, paths) == 0)
        for (unsigned i = 0; i < paths->dls_cnt && !handle; i++) {
            const int length = std::snprintf(path, sizeof(path), "%s/%s", paths->dls_serpath[i].dls_name, name);
            if (length < static_cast<int>(sizeof(path))) handle = real_dlopen()(path, RTLD_LAZY);
        }
    std::free(paths);
    return handle;
}

// Kept loaded from then on, so that the facade's need of it is met by this very one.
void* open_real(const char* name, const void* caller) {
    void* handle = real_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle && !std::strchr(name, '/')) handle = open_where_caller_would(name, caller);
    return handle ? handle : real_dlopen()(name, RTLD_LAZY);
}

bool load(Facade& facade) {
    if (const int known = facade.state.load(std::memory_order_acquire)) return known == 1;
    char path[sizeof(facade.path)];
    bool loaded = folder_of(&facades, path, sizeof(path) - std::strlen(facade.file) - 1);
    if (loaded) {
        std::strcat(path, facade.file);
        loaded = real_dlopen()(path, RTLD_LAZY) != nullptr;
    }
    if (loaded) std::memcpy(facade.path, path, sizeof(path));
    facade.state.store(loaded ? 1 : 2, std::memory_order_release);
    return loaded;
}

}  // namespace

const char* runtime_facade(const char* name, const void* caller, int flags) {
    if (!cuslice_runtime_12 || !cuslice_split_view()) return name;
    const int saved_errno = errno;
    const char* result = name;
    link_map* module = nullptr;
    void* real = flags & RTLD_NOLOAD ? real_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD) : open_real(name, caller);
    if (real && dlinfo(real, RTLD_DI_LINKMAP, &module) == 0 && module)
        for (Facade& facade : facades)
            if (std::strcmp(soname_of(module), facade.soname) == 0 && load(facade)) result = facade.path;
    errno = saved_errno;
    return result;
}

}  // namespace cuslice
