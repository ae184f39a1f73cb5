#include <cstring>

#include "shim/loader/runtime_facade.h"
#include "virtual_gpu/driver/locate.h"

extern "C" {

__attribute__((visibility("hidden"))) cuslice::DlopenFunction cuslice_next_dlopen = nullptr;

// Which library a program gets that opens one by any name or path: ours in place of the driver and of NVML, and where
// GPUs are split one that stands before the runtime. The
// trampoline in dlopen_x86_64.S calls this on every dlopen of the process, so it does next to nothing.
__attribute__((visibility("hidden"))) const char* cuslice_dlopen_name(const char* name, const void* caller, int flags) {
    __atomic_store_n(&cuslice_next_dlopen, cuslice::real_dlopen(), __ATOMIC_RELAXED);
    if (!name) return name;
    const char* slash = std::strrchr(name, '/');
    const char* file = slash ? slash + 1 : name;
    // Both are loaded already, under these very SONAMEs, which is how the loader finds them.
    if (std::strncmp(file, "libcuda.so", 10) == 0) return "libcuda.so.1";
    if (std::strncmp(file, "libnvidia-ml.so", 15) == 0) return "libnvidia-ml.so.1";
    if (std::strncmp(file, "libcudart.so", 12) == 0) return cuslice::runtime_facade(name, caller, flags);
    return name;
}
}
