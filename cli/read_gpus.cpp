// The querying child: the public driver API through dlopen and dlsym, as any program would use it.
#include <cuda.h>
#include <dlfcn.h>

#include <array>

#include "cli/gpu_query.h"
#include "virtual_gpu/driver/load.h"
#include "virtual_gpu/driver/nvml.h"

namespace cuslice::cli {
namespace {

// Nothing is linked: this same code asks the real driver, the fake one and the preloaded library.
template <typename Function>
Function* look_up(void* library, const char* name) {
    return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

// What is asked of a driver. The forms with a suffix are the ones that cuda.h's own names stand for.
struct Driver {
    explicit Driver(void* library)
        : init(look_up<decltype(cuInit)>(library, "cuInit")),
          error_name(look_up<decltype(cuGetErrorName)>(library, "cuGetErrorName")),
          device_count(look_up<decltype(cuDeviceGetCount)>(library, "cuDeviceGetCount")),
          device(look_up<decltype(cuDeviceGet)>(library, "cuDeviceGet")),
          device_name(look_up<decltype(cuDeviceGetName)>(library, "cuDeviceGetName")),
          // The second form tells a MIG device's own UUID.
          device_uuid(look_up<decltype(cuDeviceGetUuid_v2)>(library, "cuDeviceGetUuid_v2")),
          pci_bus_id(look_up<decltype(cuDeviceGetPCIBusId)>(library, "cuDeviceGetPCIBusId")),
          total_memory(look_up<decltype(cuDeviceTotalMem_v2)>(library, "cuDeviceTotalMem_v2")) {}

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

// As nvidia-smi prints it.
std::string uuid_text(const CUuuid& uuid, bool mig) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string text = mig ? "MIG-" : "GPU-";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += kHex[byte >> 4];
        text += kHex[byte & 15];
    }
    return text;
}

// Free memory without a context, which would itself take some hundred MiB.
class Nvml {
  public:
    explicit Nvml(const std::string& file) {
        void* const library = file.empty() ? nullptr : ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        auto* const init = look_up<nvml::functions::nvmlInit_v2>(library, "nvmlInit_v2");
        by_uuid_ = look_up<nvml::functions::nvmlDeviceGetHandleByUUID>(library, "nvmlDeviceGetHandleByUUID");
        memory_ = look_up<nvml::functions::nvmlDeviceGetMemoryInfo>(library, "nvmlDeviceGetMemoryInfo");
        ready_ = init != nullptr && by_uuid_ != nullptr && memory_ != nullptr && init() == nvml::SUCCESS;
    }

    std::optional<std::uint64_t> free_of(const std::string& uuid) const {
        nvml::Device device = nullptr;
        nvml::Memory memory{};
        if (!ready_ || by_uuid_(uuid.c_str(), &device) != nvml::SUCCESS) return std::nullopt;
        if (memory_(device, &memory) != nvml::SUCCESS) return std::nullopt;
        return memory.free;
    }

  private:
    nvml::functions::nvmlDeviceGetHandleByUUID* by_uuid_ = nullptr;
    nvml::functions::nvmlDeviceGetMemoryInfo* memory_ = nullptr;
    bool ready_ = false;
};

std::string error_text(const Driver& driver, const char* function, CUresult result) {
    const char* name = nullptr;
    if (driver.error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
    return std::string(function) + " says " + name + " (" + std::to_string(static_cast<int>(result)) + ")";
}

// The first error ends the list: a GPU that is half known would be shown with wrong figures.
CUresult read_gpu(const Driver& driver, int ordinal, Gpu& gpu) {
    CUdevice device = 0;
    std::array<char, 256> name{};
    std::array<char, 32> pci{};
    CUuuid uuid{};
    std::size_t total = 0;
    CUresult result = driver.device(&device, ordinal);
    if (result == CUDA_SUCCESS) result = driver.device_name(name.data(), static_cast<int>(name.size()), device);
    if (result == CUDA_SUCCESS) result = driver.device_uuid(&uuid, device);
    if (result == CUDA_SUCCESS) result = driver.pci_bus_id(pci.data(), static_cast<int>(pci.size()), device);
    if (result == CUDA_SUCCESS) result = driver.total_memory(&total, device);
    gpu.ordinal = ordinal;
    gpu.name = name.data();
    // NVIDIA names an instance after its GPU: "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
    gpu.uuid = uuid_text(uuid, gpu.name.find(" MIG ") != gpu.name.npos);
    gpu.pci = pci.data();
    gpu.total = total;
    return result;
}

}  // namespace

Gpus read_gpus(const std::string& driver_file, const std::string& nvml_file) {
    Gpus gpus;
    void* const library = ::dlopen(driver_file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        gpus.failure = ::dlerror();
        // Looked for by its name alone, and not there: a driver that was named is another mistake.
        if (driver_file.find('/') == driver_file.npos)
            gpus.failure = "no NVIDIA driver here: " + gpus.failure + ". " + kNoDriverAdvice;
        return gpus;
    }
    const Driver driver(library);
    if (!driver.whole()) {
        gpus.failure = driver_file + " lacks functions of a driver of CUDA 11.4 or newer";
        return gpus;
    }
    int count = 0;
    CUresult result = driver.init(0);
    if (result != CUDA_SUCCESS) gpus.failure = error_text(driver, "cuInit", result);
    if (result == CUDA_SUCCESS) result = driver.device_count(&count);
    const Nvml nvml(result == CUDA_SUCCESS ? nvml_file : "");
    for (int ordinal = 0; result == CUDA_SUCCESS && ordinal < count; ++ordinal) {
        Gpu gpu;
        result = read_gpu(driver, ordinal, gpu);
        gpu.free = nvml.free_of(gpu.uuid);
        gpus.list.push_back(gpu);
    }
    if (result != CUDA_SUCCESS && gpus.failure.empty()) gpus.failure = error_text(driver, "the driver", result);
    return gpus;
}

}  // namespace cuslice::cli
