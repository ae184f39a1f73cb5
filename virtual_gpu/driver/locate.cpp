// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/locate.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "elf/file.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/path_buffer.h"
#include "virtual_gpu/driver/real_dlopen.h"
#include "virtual_gpu/driver/search_path.h"

namespace cuslice {

namespace {

// The library that a program opened first, for each borrowed name.
struct Opened {
    const char* soname;
    std::atomic<int> state;  // 0: nothing yet, 1: being written, 2: there
    const char* where;
    char path[4096];
    std::atomic<const void*> real;  // a place in the library that was opened as the real one
};
constinit Opened openings[] = {{"libcuda.so.1", 0, nullptr, {}, nullptr},
                               {"libnvidia-ml.so.1", 0, nullptr, {}, nullptr}};

constinit thread_local bool opening_now = false, starting_now = false;

struct Search {
    const char* soname;
    char* text;
    size_t size;
    const char** where;
    void* found = nullptr;

    // True when it is what we look for.
    bool take(const char* path, const char* how, int more_flags = 0) {
        const bool outer = opening_now;
        opening_now = true;
        void* handle = real_dlopen()(path, RTLD_NOW | RTLD_LOCAL | more_flags);
        opening_now = outer;
        if (!handle)
            return false;
        const LoadedObject object = object_of(handle);
        if (!object || object.find(kMarker)) {
            Libdl::dlclose(handle);
            return false;
        }
        std::snprintf(text, size, "%s", path);
        if (where)
            *where = how;
        found = handle;
        return true;
    }

    bool take_from(void* opener) {
        return visit_candidates(opener, soname, [this](const char* path, const char* how) { return take(path, how); });
    }
};

bool copy_path(char (&to)[4096], const char* path) {
    const size_t length = std::strlen(path);
    if (length >= sizeof(to))
        return false;
    std::memcpy(to, path, length + 1);
    return true;
}

// Keeps an object from being unloaded while it is asked. The program has an empty path.
class Held {
  public:
    explicit Held(const char* path) : handle_(real_dlopen()(*path ? path : nullptr, RTLD_LAZY | RTLD_NOLOAD)) {}
    ~Held() {
        if (handle_)
            Libdl::dlclose(handle_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    // Null if it is gone.
    void* handle() const { return handle_; }

  private:
    void* handle_;
};

// Our own objects: whatever carries the mark, and what lies beside us. The runtime shim needs the driver by its name
// too.
class Ours {
  public:
    Ours() : path_(object_at(kOwnPlace).path()) {}

    bool include(const LoadedObject& object) const {
        if (object.find(kMarker) || object.holds(kOwnPlace))
            return true;
        const char *const ours = std::strrchr(path_, '/'), *const theirs = std::strrchr(object.path(), '/');
        return ours && theirs && ours - path_ == theirs - object.path() &&
               std::strncmp(path_, object.path(), static_cast<size_t>(ours - path_)) == 0;
    }

  private:
    const char* path_;
};

// Calls use(handle) for each object that needs the library by its name, in the loader's order, until it returns true.
// The loader's lock is not held meanwhile.
template <typename Use>
bool any_needing(const char* soname, Use use) {
    const Ours ours;
    PathBuffer path;
    for (size_t turn = 0;; turn++) {
        size_t seen = 0;
        const bool more = any_object([&](const LoadedObject& object) {
            return object.needs(soname) && !ours.include(object) && seen++ == turn && path.set(object.path());
        });
        if (!more)
            return false;
        const Held object(path.text());
        if (object.handle() && use(object.handle()))
            return true;
    }
}

bool loaded_already(Search& search) {
    PathBuffer path;
    const bool there = any_object([&](const LoadedObject& object) {
        return std::strcmp(object.soname(), search.soname) == 0 && *object.path() && !object.find(kMarker) &&
               path.set(object.path());
    });
    return there && search.take(path.text(), kLoaded, RTLD_NOLOAD);
}

template <typename Which>
bool path_of_first(char* path, size_t size, Which which) {
    return any_object([&](const LoadedObject& object) {
        const bool found = which(object);
        if (found)
            std::snprintf(path, size, "%s", object.path());
        return found;
    });
}

Opened* opening_of(const char* soname) {
    for (Opened& opening : openings)
        if (std::strcmp(opening.soname, soname) == 0)
            return &opening;
    return nullptr;
}

// The path as it will be valid when the program has gone to another folder.
bool make_absolute(const char* path, char (&to)[4096]) {
    if (*path == '/')
        return copy_path(to, path);
    if (!getcwd(to, sizeof(to)))
        return false;
    const size_t folder = std::strlen(to);
    const int length = std::snprintf(to + folder, sizeof(to) - folder, "/%s", path);
    return length > 0 && static_cast<size_t>(length) < sizeof(to) - folder;
}

bool find_for(const char* soname, const char* name, const void* caller, Opened& to) {
    const auto keep = [&](const char* path, const char* where) {
        to.where = where;
        return is_library(path) && make_absolute(path, to.path);
    };
    if (std::strchr(name, '/'))
        return keep(name, kAsAsked);
    // Where somebody needs it by name it would have been loaded with that one already.
    if (any_needing(soname, [&](void* object) { return visit_candidates(object, soname, keep); }))
        return true;
    return visit_candidates(Held(object_at(caller).path()).handle(), name, keep);
}

}  // namespace

bool is_library(const char* path) {
    ElfW(Ehdr) header;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool whole = read(fd, &header, sizeof(header)) == sizeof(header);
    close(fd);
    return whole && elf_is_native(&header);
}

bool opened_as(const char* soname, PathBuffer& path) {
    const Opened* const opening = opening_of(soname);
    const void* const place = opening ? opening->real.load(std::memory_order_acquire) : nullptr;
    return place && path.set(object_at(place).path());
}

StartingReal::StartingReal() : outer_(starting_now) { starting_now = true; }
StartingReal::~StartingReal() { starting_now = outer_; }

bool in_real_library(const void* address) {
    if (opening_now)
        return true;
    const LoadedObject object = object_at(address);
    if (starting_now && object.find("dlopen"))
        return true;
    for (const Opened& opening : openings)
        if (const void* place = opening.real.load(std::memory_order_acquire); place && object.holds(place))
            return true;
    const char* const slash = std::strrchr(object.path(), '/');
    if (!slash || Ours().include(object))
        return false;
    for (const char* family : {"/libcuda.so", "/libcuda_loader.", "/libnvidia-ml.so", "/libnvidia-ml_loader."})
        if (std::strncmp(slash, family, std::strlen(family)) == 0)
            return true;
    return false;
}

void remember_opening(const char* soname, const char* name, const void* caller) {
    Opened* const opening = opening_of(soname);
    int nothing = 0;
    if (!opening || opening->real.load(std::memory_order_relaxed) ||
        !opening->state.compare_exchange_strong(nothing, 1))
        return;
    const int saved_errno = errno;
    opening->state.store(find_for(soname, name, caller, *opening) ? 2 : 0, std::memory_order_release);
    errno = saved_errno;
}

void* open_real_library(const char* soname, const char* explicit_path, char* text, size_t size, const char** where) {
    const int saved_errno = errno;
    Search search{soname, text, size, where};
    Opened* const opening = opening_of(soname);
    text[0] = '\0';
    if (explicit_path) {
        if (!search.take(explicit_path, kAsAsked)) {
            const char* why = Libdl::dlerror();
            std::snprintf(text, size, "%s", why ? why : "it is cuslice itself");
        }
    } else if (!loaded_already(search) &&
               !(opening && opening->state.load(std::memory_order_acquire) == 2 &&
                 search.take(opening->path, opening->where)) &&
               !any_needing(soname, [&](void* object) { return search.take_from(object); }) &&
               !search.take_from(nullptr)) {
        std::snprintf(text, size, "no %s in the loader's search path or cache", soname);
    }
    link_map* map = nullptr;
    if (search.found && opening && Libdl::dlinfo(search.found, RTLD_DI_LINKMAP, &map) == 0)
        opening->real.store(map->l_ld, std::memory_order_release);
    errno = saved_errno;
    return search.found;
}

bool find_other_copy(char* path, size_t size) {
    return path_of_first(path, size, [](const LoadedObject& object) {
        return object.find(kMarker) && !object.holds(kOwnPlace) && !std::strcmp(object.soname(), "libcuda.so.1");
    });
}

bool find_opened_past_us(const char* soname, char* path, size_t size) {
    const Ours ours;
    // Objects after the C library in the loader's order were opened while the program ran.
    const auto c_library = reinterpret_cast<const void*>(real_dlopen());
    bool opened = false;
    return path_of_first(path, size, [&](const LoadedObject& object) {
        const bool found = opened && std::strcmp(object.soname(), soname) == 0 && !ours.include(object);
        opened = opened || object.holds(c_library);
        return found;
    });
}

}  // namespace cuslice
