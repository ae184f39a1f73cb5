// SPDX-License-Identifier: Apache-2.0
// The querying child: the public driver API through dlopen and dlsym, as any program would use it.
#include <cuda.h>
#include <dlfcn.h>

#include <array>

#include "cli/gpus/gpu_query.h"
#include "cli/gpus/open_library.h"
#include "config/gpu_selector.h"
#include "virtual_gpu/driver/load.h"

namespace cuslice::cli {
namespace {

// Nothing is linked: this same code asks the real driver, the fake one and the preloaded library.
template <typename Function>
Function* look_up(void* library, const char* name) {
    return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

// Functions of a driver that are called here. The forms with a suffix are the ones that cuda.h's own names stand for.
struct Driver {
    explicit Driver(void* library)
        : init(look_up<decltype(cuInit)>(library, "cuInit")),
          error_name(look_up<decltype(cuGetErrorName)>(library, "cuGetErrorName")),
          device_count(look_up<decltype(cuDeviceGetCount)>(library, "cuDeviceGetCount")),
          device(look_up<decltype(cuDeviceGet)>(library, "cuDeviceGet")),
          device_name(look_up<decltype(cuDeviceGetName)>(library, "cuDeviceGetName")),
          // The second form tells a MIG device's own UUID; drivers before 470 have the first alone.
          device_uuid(look_up<decltype(cuDeviceGetUuid_v2)>(library, "cuDeviceGetUuid_v2")),
          pci_bus_id(look_up<decltype(cuDeviceGetPCIBusId)>(library, "cuDeviceGetPCIBusId")),
          total_memory(look_up<decltype(cuDeviceTotalMem_v2)>(library, "cuDeviceTotalMem_v2")) {
        if (device_uuid == nullptr)
            device_uuid = look_up<decltype(cuDeviceGetUuid)>(library, "cuDeviceGetUuid");
    }

    bool whole() const {
        return init != nullptr && error_name != nullptr && device_count != nullptr && device != nullptr &&
               device_name != nullptr && device_uuid != nullptr && pci_bus_id != nullptr && total_memory != nullptr;
    }

    decltype(&cuInit) init;
    decltype(&cuGetErrorName) error_name;
    decltype(&cuDeviceGetCount) device_count;
    decltype(&cuDeviceGet) device;
    decltype(&cuDeviceGetName) device_name;
    decltype(&cuDeviceGetUuid_v2) device_uuid;
    decltype(&cuDeviceGetPCIBusId) pci_bus_id;
    decltype(&cuDeviceTotalMem_v2) total_memory;
};

std::string error_text(const Driver& driver, const char* function, CUresult result) {
    const char* name = nullptr;
    if (driver.error_name(result, &name) != CUDA_SUCCESS || name == nullptr)
        name = "an unknown error";
    return std::string(function) + " says " + name + " (" + std::to_string(static_cast<int>(result)) + ")";
}

// The first error ends the list: a GPU that is half known would be shown with wrong figures.
CUresult read_gpu(const Driver& driver, int ordinal, Gpu& gpu) {
    CUdevice device = 0;
    std::array<char, 256> name{};
    std::array<char, 32> pci{};
    CUuuid uuid{};
    size_t total = 0;
    CUresult result = driver.device(&device, ordinal);
    if (result == CUDA_SUCCESS)
        result = driver.device_name(name.data(), static_cast<int>(name.size()), device);
    if (result == CUDA_SUCCESS)
        result = driver.device_uuid(&uuid, device);
    if (result == CUDA_SUCCESS)
        result = driver.pci_bus_id(pci.data(), static_cast<int>(pci.size()), device);
    if (result == CUDA_SUCCESS)
        result = driver.total_memory(&total, device);
    gpu.ordinal = ordinal;
    gpu.name = name.data();
    char text[sizeof(GpuIdentity::uuid)];
    write_uuid(uuid.bytes, gpu.name, text);
    gpu.uuid = text;
    gpu.pci = pci.data();
    gpu.total = total;
    return result;
}

}  // namespace

Gpus read_gpus(const std::string& driver_file, bool as_programs) {
    Gpus gpus;
    void* const library =
        as_programs ? ::dlopen(driver_file.c_str(), RTLD_NOW | RTLD_LOCAL) : open_library(driver_file);
    if (library == nullptr) {
        gpus.failure = ::dlerror();
        // Looked for by its name alone, and not there: a driver that was named is another mistake.
        if (driver_file.find('/') == driver_file.npos)
            gpus.failure = "no NVIDIA driver here: " + gpus.failure + ". " + kNoDriverAdvice;
        return gpus;
    }
    const Driver driver(library);
    if (!driver.whole()) {
        gpus.failure = driver_file + " lacks functions of a driver of CUDA 11.0 or newer";
        return gpus;
    }
    int count = 0;
    CUresult result = driver.init(0);
    if (result != CUDA_SUCCESS)
        gpus.failure = error_text(driver, "cuInit", result);
    if (result == CUDA_SUCCESS)
        result = driver.device_count(&count);
    for (int ordinal = 0; result == CUDA_SUCCESS && ordinal < count; ++ordinal) {
        Gpu gpu;
        result = read_gpu(driver, ordinal, gpu);
        gpus.list.push_back(gpu);
    }
    gpus.count = gpus.list.size();
    if (result != CUDA_SUCCESS && gpus.failure.empty())
        gpus.failure = error_text(driver, "the driver", result);
    return gpus;
}

}  // namespace cuslice::cli
