#include "virtual_gpu/driver/locate.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "virtual_gpu/driver/libc.h"
#include "virtual_gpu/driver/loader_cache.h"

namespace cuslice {

namespace {

struct Search {
    const char* soname;
    char* text;
    std::size_t size;
    void* found;
};

// Opens one candidate; true when it is what we look for.
bool try_path(const char* path, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    void* handle = real_dlopen()(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    if (dlsym(handle, "cuslice_marker")) {
        dlclose(handle);
        return false;
    }
    search.found = handle;
    std::snprintf(search.text, search.size, "%s", path);
    return true;
}

bool try_folder(const char* folder, Search& search) {
    char path[4096];
    const int length = std::snprintf(path, sizeof(path), "%s/%s", folder, search.soname);
    return length > 0 && static_cast<std::size_t>(length) < sizeof(path) && try_path(path, &search);
}

// The loader tells the size it needs first; the memory is the kernel's, as the host's malloc may not be ready for us.
bool try_search_path(Search& search) {
    void* program = real_dlopen()(nullptr, RTLD_LAZY);
    Dl_serinfo need{};
    if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &need) != 0) return false;
    const std::size_t size = need.dls_size;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    auto* info = static_cast<Dl_serinfo*>(memory);
    info->dls_size = need.dls_size;
    info->dls_cnt = need.dls_cnt;
    bool found = false;
    if (dlinfo(program, RTLD_DI_SERINFO, info) == 0)
        for (unsigned i = 0; i < info->dls_cnt && !found; i++)
            found = try_folder(info->dls_serpath[i].dls_name, search);
    munmap(memory, size);
    return found;
}

}  // namespace

DlopenFunction real_dlopen() {
    static DlopenFunction function = nullptr;  // the same value whoever writes it
    DlopenFunction known = __atomic_load_n(&function, __ATOMIC_RELAXED);
    if (!known) {
        known = reinterpret_cast<DlopenFunction>(dlsym(RTLD_NEXT, "dlopen"));
        __atomic_store_n(&function, known, __ATOMIC_RELAXED);
    }
    return known;
}

bool folder_of(const void* address, char* folder, std::size_t size) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return false;
    const char* slash = std::strrchr(info.dli_fname, '/');
    if (!slash || static_cast<std::size_t>(slash - info.dli_fname) >= size) return false;
    std::memcpy(folder, info.dli_fname, static_cast<std::size_t>(slash - info.dli_fname));
    folder[slash - info.dli_fname] = '\0';
    return true;
}

void* open_real_library(const char* soname, const char* explicit_path, char* text, std::size_t size) {
    const int saved_errno = errno;
    Search search{soname, text, size, nullptr};
    text[0] = '\0';
    if (explicit_path) {
        if (!try_path(explicit_path, &search)) {
            const char* why = dlerror();
            std::snprintf(text, size, "%s", why ? why : "it is cuslice itself");
        }
    } else if (!try_search_path(search) && !for_each_in_loader_cache(kLoaderCache, soname, try_path, &search)) {
        std::snprintf(text, size, "no %s in the loader's search path or cache", soname);
    }
    errno = saved_errno;
    return search.found;
}

}  // namespace cuslice
