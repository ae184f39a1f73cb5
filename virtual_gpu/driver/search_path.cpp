#include "virtual_gpu/driver/search_path.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/loader_cache.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/path_buffer.h"

namespace cuslice {

namespace {

// The last one is the folder itself. The conditions are the x86-64 psABI's, as far as the compiler's runtime knows
// them: no CPU has AVX2 and BMI2 and lacks the rest of its level.
struct Level {
    const char* subfolder;
    bool (*fits)();
};
constexpr Level kLevels[] = {
    {"/glibc-hwcaps/x86-64-v4",
     [] { return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") != 0; }},
    {"/glibc-hwcaps/x86-64-v3", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") != 0; }},
    {"/glibc-hwcaps/x86-64-v2",
     [] { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") != 0; }},
    {"", [] { return true; }},
};

struct Search {
    const char* name;
    VisitCandidate visit;
    void* argument;
    PathBuffer folder, path;

    bool in_folder(const char* there, const char* where) {
        for (const Level& level : kLevels)
            if (level.fits() && folder.join(there, level.subfolder, "/") && path.join(folder.text(), name, "") &&
                visit(path.text(), where, argument))
                return true;
        return false;
    }
};

// Entries of the cache that lie in this level's subfolders.
struct CacheSearch {
    Search& search;
    const Level& level;

    static bool visit(const char* path, void* argument) {
        const auto& self = *static_cast<CacheSearch*>(argument);
        const char* const file = std::strrchr(path, '/');
        const char* const subfolder = std::strstr(path, "/glibc-hwcaps/");
        const bool fits = subfolder && file ? std::strncmp(subfolder, self.level.subfolder, file - subfolder) == 0 &&
                                                  self.level.subfolder[file - subfolder] == '\0'
                                            : *self.level.subfolder == '\0';
        return fits && self.search.visit(path, kInCache, self.search.argument);
    }
};

// The kernel's memory, as the host's malloc may not be ready for us.
class Folders {
  public:
    explicit Folders(void* handle) {
        Dl_serinfo need{};
        if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &need) != 0) return;
        void* memory = mmap(nullptr, need.dls_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return;
        info_ = static_cast<Dl_serinfo*>(memory);
        size_ = need.dls_size;
        info_->dls_size = need.dls_size;
        info_->dls_cnt = need.dls_cnt;
        filled_ = dlinfo(handle, RTLD_DI_SERINFO, info_) == 0;
    }
    ~Folders() {
        if (info_) munmap(info_, size_);
    }
    Folders(const Folders&) = delete;
    Folders& operator=(const Folders&) = delete;

    std::span<const Dl_serpath> all() const {
        return filled_ ? std::span<const Dl_serpath>(info_->dls_serpath, info_->dls_cnt)
                       : std::span<const Dl_serpath>();
    }

  private:
    Dl_serinfo* info_ = nullptr;
    std::size_t size_ = 0;
    bool filled_ = false;
};

// glibc tells the folders of an object in one list, [RPATH, LD_LIBRARY_PATH, RUNPATH, defaults], and not where the
// defaults begin. In the list of an object that has nothing but its own folder as RUNPATH they begin after that folder:
// the facade for libcuda.so is such an object (shim/CMakeLists.txt). Without it, none is known to be a default.
std::size_t count_defaults() {
    void* const facade = real_dlopen()("libcuda.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!facade) return 0;
    std::size_t count = 0;
    const char* const path = object_of(facade).path();
    const char* const slash = std::strrchr(path, '/');
    const std::size_t length = slash ? static_cast<std::size_t>(slash - path) : 0;
    const Folders folders(facade);
    for (std::size_t i = folders.all().size(); i-- > 0 && length > 0 && count == 0;) {
        const char* const folder = folders.all()[i].dls_name;
        if (std::strncmp(folder, path, length) == 0 && folder[length] == '\0') count = folders.all().size() - 1 - i;
    }
    dlclose(facade);
    return count;
}

}  // namespace

bool visit_candidates(std::span<const Dl_serpath> folders, std::size_t defaults, const char* cache_path,
                      const char* name, VisitCandidate visit, void* argument) {
    __builtin_cpu_init();
    Search search{name, visit, argument, {}, {}};
    const std::size_t before_cache = folders.size() - std::min(defaults, folders.size());
    for (const Dl_serpath& folder : folders.first(before_cache))
        if (search.in_folder(folder.dls_name, kInSearchPath)) return true;
    for (const Level& level : kLevels) {
        CacheSearch in_cache{search, level};
        if (level.fits() && for_each_in_loader_cache(cache_path, name, CacheSearch::visit, &in_cache)) return true;
    }
    for (const Dl_serpath& folder : folders.subspan(before_cache))
        if (search.in_folder(folder.dls_name, kInDefaults)) return true;
    return false;
}

bool visit_candidates(void* handle, const char* name, VisitCandidate visit, void* argument) {
    const int saved_errno = errno;
    const Folders folders(handle ? handle : real_dlopen()(nullptr, RTLD_LAZY));
    const bool found = visit_candidates(folders.all(), count_defaults(), kLoaderCache, name, visit, argument);
    errno = saved_errno;
    return found;
}

}  // namespace cuslice
