// SPDX-License-Identifier: Apache-2.0
// The querying child: what NVML says of the machine. It starts no driver, and takes no memory of any GPU.
#include <dlfcn.h>

#include <array>
#include <system_error>
#include <thread>

#include "cli/gpus/gpu_query.h"
#include "cli/gpus/open_library.h"
#include "config/visible.h"
#include "virtual_gpu/nvml/nvml_query.h"

// Only `cuslice top` asks for these.
#define CUSLICE_NVML_SENSOR_FUNCTIONS(F) \
    F(nvmlDeviceGetUtilizationRates)     \
    F(nvmlDeviceGetTemperature)          \
    F(nvmlDeviceGetPowerUsage)           \
    F(nvmlDeviceGetEnforcedPowerLimit)

namespace cuslice::cli {
namespace {

// A library that was opened here. Nothing is linked.
class Nvml {
  public:
    explicit Nvml(void* library)
        :
#define CUSLICE_MEMBER(name) name##_(look_up<decltype(::name)>(library, #name)),
          CUSLICE_NVML_QUERY_FUNCTIONS(CUSLICE_MEMBER) CUSLICE_NVML_SENSOR_FUNCTIONS(CUSLICE_MEMBER)
#undef CUSLICE_MEMBER
              init_(look_up<decltype(::nvmlInit_v2)>(library, "nvmlInit_v2")),
          error_(look_up<decltype(::nvmlErrorString)>(library, "nvmlErrorString")) {
    }

    nvmlReturn_t init() const { return init_ == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : init_(); }
    std::string text_of(nvmlReturn_t code) const {
        return error_ == nullptr ? "error " + std::to_string(static_cast<int>(code)) : error_(code);
    }
#define CUSLICE_METHOD(name)                                                               \
    template <typename... Arguments>                                                       \
    nvmlReturn_t name(Arguments... arguments) const {                                      \
        return name##_ == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : name##_(arguments...); \
    }
    CUSLICE_NVML_QUERY_FUNCTIONS(CUSLICE_METHOD)
    CUSLICE_NVML_SENSOR_FUNCTIONS(CUSLICE_METHOD)
#undef CUSLICE_METHOD

  private:
    template <typename Function>
    static Function* look_up(void* library, const char* name) {
        return reinterpret_cast<Function*>(::dlsym(library, name));
    }

#define CUSLICE_MEMBER(name) decltype(::name)* name##_;
    CUSLICE_NVML_QUERY_FUNCTIONS(CUSLICE_MEMBER)
    CUSLICE_NVML_SENSOR_FUNCTIONS(CUSLICE_MEMBER)
#undef CUSLICE_MEMBER
    decltype(::nvmlInit_v2)* init_;
    decltype(::nvmlErrorString)* error_;
};

// A GPU may lack a sensor, and a MIG instance has none of its own.
Sensors read_sensors(const Nvml& nvml, nvmlDevice_t device) {
    Sensors sensors;
    nvmlUtilization_t busy{};
    unsigned value = 0;
    if (nvml.nvmlDeviceGetUtilizationRates(device, &busy) == NVML_SUCCESS)
        sensors.busy = busy.gpu;
    if (nvml.nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
        sensors.temperature = value;
    if (nvml.nvmlDeviceGetPowerUsage(device, &value) == NVML_SUCCESS)
        sensors.power = value;
    if (nvml.nvmlDeviceGetEnforcedPowerLimit(device, &value) == NVML_SUCCESS)
        sensors.most_power = value;
    return sensors;
}

// False if this one can't be named. One without figures of its memory (it is the host's) has none here either.
bool read_gpu(const Nvml& nvml, nvmlDevice_t device, Gpu& gpu) {
    GpuIdentity identity;
    GpuMemory memory;
    std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> name{};
    if (!query_identity(nvml, device, identity))
        return false;
    if (nvml.nvmlDeviceGetName(device, name.data(), static_cast<unsigned>(name.size())) != NVML_SUCCESS)
        return false;
    gpu.ordinal = identity.index;
    gpu.uuid = identity.uuid;
    gpu.pci = identity.pci;
    gpu.name = name.data();
    if (query_memory(nvml, device, memory) != NVML_SUCCESS)
        return true;
    gpu.total = memory.total;
    gpu.free = memory.used < memory.total ? memory.total - memory.used : 0;
    return true;
}

// The GPU with this index, or its instances.
std::vector<Gpu> read_all_of(const Nvml& nvml, unsigned index, bool with_sensors) {
    std::vector<Gpu> all;
    std::array<nvmlDevice_t, GpuPlaces::kMax> devices{};
    for (size_t i = 0, count = query_devices_of(nvml, index, devices); i < count; ++i) {
        Gpu gpu;
        if (!read_gpu(nvml, devices[i], gpu))
            continue;
        if (with_sensors)
            gpu.sensors = read_sensors(nvml, devices[i]);
        all.push_back(gpu);
    }
    return all;
}

}  // namespace

Gpus read_nvml(const std::string& nvml_file, size_t most, bool with_sensors) {
    Gpus gpus;
    void* const library = open_library(nvml_file);
    if (library == nullptr) {
        gpus.failure = ::dlerror();
        return gpus;
    }
    const Nvml nvml(library);
    if (const nvmlReturn_t code = nvml.init(); code != NVML_SUCCESS) {
        gpus.failure = "NVML says: " + nvml.text_of(code);
        return gpus;
    }
    unsigned count = 0;
    nvml.nvmlDeviceGetCount_v2(&count);
    gpus.count = count;
    if (count > most)
        return gpus;
    // NVML may take milliseconds for each answer, and a GPU takes seven: so each has a thread.
    std::vector<std::vector<Gpu>> read(count);
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < count; ++index) {
        const auto read_one = [&nvml, index, with_sensors, &into = read[index]] {
            into = read_all_of(nvml, index, with_sensors);
        };
        try {
            threads.emplace_back(read_one);
        } catch (const std::system_error&) {  // no more threads are to be had
            read_one();
        }
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const std::vector<Gpu>& of_one : read)
        for (const Gpu& gpu : of_one)
            if (gpus.list.size() < GpuPlaces::kMax)
                gpus.list.push_back(gpu);
    gpus.count = gpus.list.size();
    return gpus;
}

}  // namespace cuslice::cli
