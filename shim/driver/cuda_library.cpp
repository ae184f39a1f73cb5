// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/cuda_library.h"

#include <atomic>
#include <string_view>

#include "virtual_gpu/driver/loaded_object.h"

namespace cuslice {

namespace {

// The beginnings of their sonames, as NVIDIA's packages for CUDA 11 to 13 have them.
constexpr std::string_view kLibraries[] = {"libcublas",   "libcudnn",    "libcufft",    "libcurand",
                                           "libcusolver", "libcusparse", "libcutensor", "libcudss",
                                           "libnccl",     "libnvshmem",  "libnvjpeg",   "libnpp"};

// Programs allocate from few places.
constinit std::atomic<const void*> last_program{nullptr};

}  // namespace

bool is_cuda_library(const void* caller) {
    if (last_program.load(std::memory_order_relaxed) == caller)
        return false;
    const LoadedObject object = object_at(caller);
    const std::string_view soname = object ? object.soname() : "";
    for (const std::string_view library : kLibraries)
        if (soname.substr(0, library.size()) == library)
            return true;
    last_program.store(caller, std::memory_order_relaxed);
    return false;
}

}  // namespace cuslice
