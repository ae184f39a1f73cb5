// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/search_path.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "virtual_gpu/driver/driver_facade.h"
#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/loader_cache.h"
#include "virtual_gpu/driver/path_buffer.h"
#include "virtual_gpu/driver/real_dlopen.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

constexpr char kLevelsFolder[] = "/glibc-hwcaps";

// The last one is the folder itself.
struct Level {
    const char* subfolder;
    int number;

    bool is_folder_itself() const { return !*subfolder; }
    bool fits() const;
};
#if defined(__x86_64__)
constexpr Level kLevels[] = {
    {"/glibc-hwcaps/x86-64-v4", 4}, {"/glibc-hwcaps/x86-64-v3", 3}, {"/glibc-hwcaps/x86-64-v2", 2}, {"", 1}};

// The x86-64 psABI's level, by the features that no CPU has without the rest of the level. Not
// __builtin_cpu_supports(), whose library asks the CPU some ten times in every program that loads us: on a virtual
// machine each of that is an exit to the host, 60 us in all.
int level_of_cpu() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0, more = 0;
    constexpr unsigned kV2 = bit_SSE4_2 | bit_POPCNT, kV3 = bit_AVX2 | bit_BMI2, kV4 = bit_AVX512VL | bit_AVX512BW;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & kV2) != kV2)
        return 1;
    if (!(ecx & bit_OSXSAVE) || !__get_cpuid_count(7, 0, &eax, &more, &ecx, &edx) || (more & kV3) != kV3)
        return 2;
    // Register sets that the kernel saves for each thread.
    constexpr unsigned kAvx = 0x06, kAvx512 = 0xe6;
    unsigned kept = 0, high = 0;
    asm("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if ((kept & kAvx) != kAvx)
        return 2;
    return (more & kV4) == kV4 && (kept & kAvx512) == kAvx512 ? 4 : 3;
}
#elif defined(__aarch64__)
// The C library names no levels of it.
constexpr Level kLevels[] = {{"", 1}};
int level_of_cpu() { return 1; }
#endif

// Asked only where there is something for it.
bool Level::fits() const {
    static int known = 0;  // the same value whoever writes it
    int level = is_folder_itself() ? number : __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!level)
        __atomic_store_n(&known, level = level_of_cpu(), __ATOMIC_RELAXED);
    return number <= level;
}

struct Search {
    const char* name;
    VisitCandidate visit;
    void* argument;
    PathBuffer folder, path;

    bool in_folder(const char* there, const char* where) {
        const bool levels = folder.join(there, kLevelsFolder, "") && access(folder.text(), F_OK) == 0;
        for (const Level& level : kLevels)
            if ((levels || level.is_folder_itself()) && level.fits() && folder.join(there, level.subfolder, "/") &&
                path.join(folder.text(), name, "") && visit(path.text(), where, argument))
                return true;
        return false;
    }
};

// Entries of the cache that lie in this level's subfolders.
struct CacheSearch {
    Search& search;
    const Level& level;

    bool operator()(const char* path) const {
        const char* const file = std::strrchr(path, '/');
        const char* const subfolder = std::strstr(path, "/glibc-hwcaps/");
        const bool fits = subfolder && file ? std::strncmp(subfolder, level.subfolder, file - subfolder) == 0 &&
                                                  level.subfolder[file - subfolder] == '\0'
                                            : level.is_folder_itself();
        return fits && level.fits() && search.visit(path, kInCache, search.argument);
    }
};

// Not the host's memory, as its malloc may not be ready for us.
class Folders {
  public:
    explicit Folders(void* handle) {
        Dl_serinfo need{};
        if (Libdl::dlinfo(handle, RTLD_DI_SERINFOSIZE, &need) != 0)
            return;
        void* memory = take_scratch(need.dls_size);
        if (!memory)
            return;
        info_ = static_cast<Dl_serinfo*>(memory);
        size_ = need.dls_size;
        info_->dls_size = need.dls_size;
        info_->dls_cnt = need.dls_cnt;
        filled_ = Libdl::dlinfo(handle, RTLD_DI_SERINFO, info_) == 0;
    }
    ~Folders() { give_back_scratch(info_, size_); }
    Folders(const Folders&) = delete;
    Folders& operator=(const Folders&) = delete;

    std::span<const Dl_serpath> all() const {
        return filled_ ? std::span<const Dl_serpath>(info_->dls_serpath, info_->dls_cnt)
                       : std::span<const Dl_serpath>();
    }

  private:
    Dl_serinfo* info_ = nullptr;
    size_t size_ = 0;
    bool filled_ = false;
};

// glibc tells the folders of an object in one list, [RPATH, LD_LIBRARY_PATH, RUNPATH, defaults], and not where the
// defaults begin. In the list of an object that has nothing but its own folder as RUNPATH they begin after that folder:
// the facade for libcuda.so is such an object (shim/CMakeLists.txt). Without it, none is known to be a default.
size_t count_defaults() {
    void* const facade = driver_facade();
    if (!facade)
        return 0;
    size_t count = 0;
    const char* const path = object_of(facade).path();
    const char* const slash = std::strrchr(path, '/');
    const size_t length = slash ? static_cast<size_t>(slash - path) : 0;
    const Folders folders(facade);
    for (size_t i = folders.all().size(); i-- > 0 && length > 0 && count == 0;) {
        const char* const folder = folders.all()[i].dls_name;
        if (std::strncmp(folder, path, length) == 0 && folder[length] == '\0')
            count = folders.all().size() - 1 - i;
    }
    return count;
}

}  // namespace

bool visit_candidates(std::span<const Dl_serpath> folders, size_t defaults, const char* cache_path, const char* name,
                      VisitCandidate visit, void* argument) {
    Search search{name, visit, argument, {}, {}};
    const size_t before_cache = folders.size() - std::min(defaults, folders.size());
    for (const Dl_serpath& folder : folders.first(before_cache))
        if (search.in_folder(folder.dls_name, kInSearchPath))
            return true;
    const LoaderCache cache(cache_path);
    for (const Level& level : kLevels)
        if (cache.any(name, CacheSearch{search, level}))
            return true;
    for (const Dl_serpath& folder : folders.subspan(before_cache))
        if (search.in_folder(folder.dls_name, kInDefaults))
            return true;
    return false;
}

bool visit_candidates(void* handle, const char* name, VisitCandidate visit, void* argument) {
    const int saved_errno = errno;
    const Folders folders(handle ? handle : real_dlopen()(nullptr, RTLD_LAZY));
    const bool found = visit_candidates(folders.all(), count_defaults(), ELF_LOADER_CACHE, name, visit, argument);
    errno = saved_errno;
    return found;
}

}  // namespace cuslice
