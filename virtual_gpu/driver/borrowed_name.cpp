// SPDX-License-Identifier: Apache-2.0
// The names of the driver and of NVML: their own, those with a version, and links that lead to their files.
#include "virtual_gpu/driver/borrowed_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/path_buffer.h"
#include "virtual_gpu/driver/real_dlopen.h"
#include "virtual_gpu/driver/search_path.h"

namespace cuslice {

namespace {

constexpr const char* kNames[] = {"libcuda.so.1", "libnvidia-ml.so.1"};
constexpr size_t kVersion = 2;  // ".1"

enum class Match { none, name, versioned };

Match match(const char* file, const char* name) {
    const size_t length = std::strlen(name) - kVersion;
    if (std::strncmp(file, name, length) != 0)
        return Match::none;
    if (file[length] == '\0' || std::strcmp(file, name) == 0)
        return Match::name;
    const bool version = file[length] == '.' && file[length + 1] >= '0' && file[length + 1] <= '9';
    return version ? Match::versioned : Match::none;
}

// The C library's stat carries a version that old ones lack.
bool about(const char* path, struct stat* info, int flags = 0) {
    return syscall(SYS_newfstatat, AT_FDCWD, path, info, flags) == 0;
}

// The file that the search of the program leads to under each name, as the loader knows a file.
struct Usual {
    std::atomic<int> state;  // 0: not looked for yet, 1: being looked for, 2: known, 3: there is none
    dev_t device;
    ino_t inode;
};
constinit Usual usuals[2]{};

void look_for(size_t which) {
    Usual& usual = usuals[which];
    int nothing = 0;
    if (!usual.state.compare_exchange_strong(nothing, 1))
        return;
    const bool found = visit_candidates(nullptr, kNames[which], [&](const char* path, const char*) {
        struct stat info;
        if (!is_library(path) || !about(path, &info))
            return false;
        usual.device = info.st_dev;
        usual.inode = info.st_ino;
        return true;
    });
    usual.state.store(found ? 2 : 3, std::memory_order_release);
}

bool is_at(const struct stat& file, const char* path) {
    struct stat info;
    return about(path, &info) && info.st_ino == file.st_ino && info.st_dev == file.st_dev;
}

bool is_usual(const struct stat& file, size_t which) {
    look_for(which);
    const Usual& usual = usuals[which];
    if (usual.state.load(std::memory_order_acquire) != 2)
        return false;
    return usual.inode == file.st_ino && usual.device == file.st_dev;
}

// The fake GPU's lies beside us.
bool is_beside(const struct stat& file, const char* name) {
    char folder[1024];
    PathBuffer path;
    if (!folder_of(kOwnPlace, folder, sizeof(folder)))
        return false;
    return path.join(folder, "/fake/", name) && is_at(file, path.text());
}

bool is_opened(const struct stat& file, const char* name) {
    PathBuffer path;
    return opened_as(name, path) && is_at(file, path.text());
}

// A path whose last component says nothing: a link, or one of several names of a file.
const char* by_file(const char* path) {
    struct stat info;
    if (!about(path, &info, AT_SYMLINK_NOFOLLOW))
        return nullptr;
    const bool is_link = S_ISLNK(info.st_mode);
    if (!is_link && info.st_nlink < 2)
        return nullptr;
    if (is_link && !about(path, &info))
        return nullptr;
    if (!S_ISREG(info.st_mode))
        return nullptr;
    for (size_t i = 0; i < 2; i++) {
        const bool is_it = is_opened(info, kNames[i]) || is_beside(info, kNames[i]) || is_usual(info, i);
        if (is_it)
            return kNames[i];
    }
    return nullptr;
}

// True if the loader would find it for the caller.
bool is_there(const char* name, const void* caller) {
    if (std::strchr(name, '/'))
        return is_library(name);
    const char* const opener_path = object_at(caller).path();
    void* const opener = real_dlopen()(*opener_path ? opener_path : nullptr, RTLD_LAZY | RTLD_NOLOAD);
    const bool found = visit_candidates(opener, name, [](const char* path, const char*) { return is_library(path); });
    if (opener)
        Libdl::dlclose(opener);
    return found;
}

const char* matching(const char* file) {
    for (const char* const own : kNames)
        if (match(file, own) != Match::none)
            return own;
    return nullptr;
}

// A name with a version is left to NVIDIA's libraries where one of them asks, and means nothing without such a file.
bool is_borrowed(Match how, const char* name, const void* caller) {
    if (how == Match::name)
        return true;
    return !in_real_library(caller) && is_there(name, caller);
}

}  // namespace

const char* borrowed_name(const char* name, const void* caller) {
    const char* const slash = std::strrchr(name, '/');
    const char* const file = slash ? slash + 1 : name;
    const int saved_errno = errno;
    const char* const own = matching(file);
    const char* borrowed = nullptr;
    if (own)
        borrowed = is_borrowed(match(file, own), name, caller) ? own : nullptr;
    else if (slash)
        borrowed = by_file(name);
    errno = saved_errno;
    return borrowed;
}

}  // namespace cuslice
