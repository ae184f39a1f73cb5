// SPDX-License-Identifier: Apache-2.0
#include "fake/smi/gpu.h"

#include "fake/units.h"

namespace cuslice::fake {
namespace {

Value none() { return {std::string(kNone), ""}; }
Value text(std::string words) { return {words.empty() ? std::string(kNone) : std::move(words), ""}; }

/// The text that a function of NVML writes; "" where it has no answer.
template <typename Function>
std::string asked(Function function) {
    char words[256] = "";
    return function(words, static_cast<unsigned>(sizeof words)) == NVML_SUCCESS ? words : "";
}

/// A function of NVML that gives a number for a GPU.
using Question = nvmlReturn_t (*)(nvmlDevice_t, unsigned*);

template <Question function>
Value percent(const ListedGpu& gpu) {
    unsigned value = 0;
    if (function(gpu.handle, &value) != NVML_SUCCESS)
        return none();
    return {std::to_string(value), "%"};
}

template <Question function>
Value watts(const ListedGpu& gpu) {
    unsigned milliwatts = 0;
    if (function(gpu.handle, &milliwatts) != NVML_SUCCESS)
        return none();
    return {format("%.2f", milliwatts / 1000.0), "W"};
}

template <unsigned long long nvmlMemory_v2_t::*part>
Value memory(const ListedGpu& gpu) {
    nvmlMemory_v2_t now{};
    now.version = nvmlMemory_v2;
    if (nvmlDeviceGetMemoryInfo_v2(gpu.handle, &now) != NVML_SUCCESS)
        return none();
    return {std::to_string(now.*part / kMiB), "MiB"};
}

template <unsigned nvmlUtilization_t::*part>
Value utilization(const ListedGpu& gpu) {
    nvmlUtilization_t now{};
    if (nvmlDeviceGetUtilizationRates(gpu.handle, &now) != NVML_SUCCESS)
        return none();
    return {std::to_string(now.*part), "%"};
}

template <nvmlClockType_t which>
Value clock(const ListedGpu& gpu) {
    unsigned megahertz = 0;
    if (nvmlDeviceGetClockInfo(gpu.handle, which, &megahertz) != NVML_SUCCESS)
        return none();
    return {std::to_string(megahertz), "MHz"};
}

Value capability(const ListedGpu& gpu) {
    int major = 0, minor = 0;
    if (nvmlDeviceGetCudaComputeCapability(gpu.handle, &major, &minor) != NVML_SUCCESS)
        return none();
    return text(format("%d.%d", major, minor));
}

Value compute_mode(const ListedGpu& gpu) {
    nvmlComputeMode_t mode{};
    if (nvmlDeviceGetComputeMode(gpu.handle, &mode) != NVML_SUCCESS)
        return none();
    switch (mode) {
        case NVML_COMPUTEMODE_DEFAULT:
            return text("Default");
        case NVML_COMPUTEMODE_EXCLUSIVE_THREAD:
            return text("Exclusive_Thread");
        case NVML_COMPUTEMODE_PROHIBITED:
            return text("Prohibited");
        case NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
            return text("Exclusive_Process");
        default:
            return none();
    }
}

Value persistence(const ListedGpu& gpu) {
    nvmlEnableState_t state{};
    if (nvmlDeviceGetPersistenceMode(gpu.handle, &state) != NVML_SUCCESS)
        return none();
    return text(state == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled");
}

Value performance_state(const ListedGpu& gpu) {
    nvmlPstates_t state{};
    if (nvmlDeviceGetPerformanceState(gpu.handle, &state) != NVML_SUCCESS)
        return none();
    return state == NVML_PSTATE_UNKNOWN ? none() : text("P" + std::to_string(static_cast<int>(state)));
}

Value mig_mode(const ListedGpu& gpu) {
    unsigned current = 0, pending = 0;
    if (nvmlDeviceGetMigMode(gpu.handle, &current, &pending) != NVML_SUCCESS)
        return none();
    return text(current == NVML_DEVICE_MIG_ENABLE ? "Enabled" : "Disabled");
}

Value temperature(const ListedGpu& gpu) {
    unsigned celsius = 0;
    if (nvmlDeviceGetTemperature(gpu.handle, NVML_TEMPERATURE_GPU, &celsius) != NVML_SUCCESS)
        return none();
    return text(std::to_string(celsius));
}

Value serial(const ListedGpu& gpu) {
    return text(asked([&](char* out, unsigned size) { return nvmlDeviceGetSerial(gpu.handle, out, size); }));
}

template <std::string (*words)(const ListedGpu&)>
Value shown(const ListedGpu& gpu) {
    return text(words(gpu));
}

template <Value (*value)(const ListedGpu&)>
Value of_its_gpu(const App& app) {
    return value(app.gpu);
}

Value used_memory(const App& app) {
    if (app.bytes == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE))
        return none();
    return {std::to_string(app.bytes / kMiB), "MiB"};
}

}  // namespace

std::string uuid_of(const ListedGpu& gpu) {
    return asked([&](char* out, unsigned size) { return nvmlDeviceGetUUID(gpu.handle, out, size); });
}

std::string name_of(const ListedGpu& gpu) {
    return asked([&](char* out, unsigned size) { return nvmlDeviceGetName(gpu.handle, out, size); });
}

std::string bus_id_of(const ListedGpu& gpu) {
    nvmlPciInfo_t place{};
    return nvmlDeviceGetPciInfo_v3(gpu.handle, &place) == NVML_SUCCESS ? place.busId : "";
}

std::string driver_version() { return asked(nvmlSystemGetDriverVersion); }

std::string cuda_version() {
    int version = 0;
    if (nvmlSystemGetCudaDriverVersion_v2(&version) != NVML_SUCCESS)
        return std::string(kNone);
    return format("%d.%d", version / 1000, version % 1000 / 10);
}

std::string process_name(unsigned pid) {
    const std::string name = asked([&](char* out, unsigned size) { return nvmlSystemGetProcessName(pid, out, size); });
    return name.empty() ? std::string(kNone) : name;
}

std::vector<ListedGpu> all_gpus() {
    unsigned count = 0;
    nvmlDeviceGetCount_v2(&count);
    std::vector<ListedGpu> gpus;
    for (ListedGpu gpu; gpu.index < count; gpu.index++)
        if (nvmlDeviceGetHandleByIndex_v2(gpu.index, &gpu.handle) == NVML_SUCCESS)
            gpus.push_back(gpu);
    return gpus;
}

std::vector<App> apps_of(const ListedGpu& gpu) {
    std::vector<nvmlProcessInfo_t> there(16);
    auto count = static_cast<unsigned>(there.size());
    nvmlReturn_t result = NVML_SUCCESS;
    // More may have come since the size was told.
    while ((result = nvmlDeviceGetComputeRunningProcesses_v3(gpu.handle, &count, there.data())) ==
           NVML_ERROR_INSUFFICIENT_SIZE) {
        there.resize(count + 16);
        count = static_cast<unsigned>(there.size());
    }
    std::vector<App> apps;
    for (unsigned i = 0; result == NVML_SUCCESS && i < count; i++)
        apps.push_back({gpu, there[i].pid, there[i].usedGpuMemory});
    return apps;
}

const std::vector<Field<ListedGpu>>& gpu_fields() {
    static const std::vector<Field<ListedGpu>> fields{
        {"index", "", "", "the place in PCI order",
         [](const ListedGpu& gpu) { return text(std::to_string(gpu.index)); }},
        {"count", "", "", "how many GPUs there are",
         [](const ListedGpu&) { return text(std::to_string(all_gpus().size())); }},
        {"name", "gpu_name", "", "the model", shown<name_of>},
        {"uuid", "gpu_uuid", "", "GPU-…", shown<uuid_of>},
        {"serial", "gpu_serial", "", "the board's number", serial},
        {"pci.bus_id", "gpu_bus_id", "", "the PCI address", shown<bus_id_of>},
        {"driver_version", "", "", "the driver's version", [](const ListedGpu&) { return text(driver_version()); }},
        {"compute_cap", "", "", "the compute capability", capability},
        {"memory.total", "", "MiB", "of the GPU, or of the slice", memory<&nvmlMemory_v2_t::total>},
        {"memory.used", "", "MiB", "", memory<&nvmlMemory_v2_t::used>},
        {"memory.free", "", "MiB", "", memory<&nvmlMemory_v2_t::free>},
        {"memory.reserved", "", "MiB", "for the driver, or headroom", memory<&nvmlMemory_v2_t::reserved>},
        {"utilization.gpu", "", "%", "", utilization<&nvmlUtilization_t::gpu>},
        {"utilization.memory", "", "%", "", utilization<&nvmlUtilization_t::memory>},
        {"temperature.gpu", "", "", "degrees Celsius", temperature},
        {"power.draw", "", "W", "", watts<nvmlDeviceGetPowerUsage>},
        {"power.limit", "", "W", "", watts<nvmlDeviceGetEnforcedPowerLimit>},
        {"fan.speed", "", "%", "", percent<nvmlDeviceGetFanSpeed>},
        {"pstate", "", "", "the performance state", performance_state},
        {"clocks.sm", "clocks.current.sm", "MHz", "", clock<NVML_CLOCK_SM>},
        {"clocks.mem", "clocks.current.memory", "MHz", "", clock<NVML_CLOCK_MEM>},
        {"persistence_mode", "", "", "", persistence},
        {"compute_mode", "", "", "", compute_mode},
        {"mig.mode.current", "", "", "", mig_mode},
    };
    return fields;
}

const std::vector<Field<App>>& app_fields() {
    static const std::vector<Field<App>> fields{
        {"gpu_name", "", "", "the model", of_its_gpu<shown<name_of>>},
        {"gpu_uuid", "", "", "GPU-…", of_its_gpu<shown<uuid_of>>},
        {"gpu_serial", "", "", "the board's number", of_its_gpu<serial>},
        {"gpu_bus_id", "", "", "the PCI address", of_its_gpu<shown<bus_id_of>>},
        {"pid", "", "", "the process", [](const App& app) { return text(std::to_string(app.pid)); }},
        {"process_name", "name", "", "its program", [](const App& app) { return text(process_name(app.pid)); }},
        {"used_gpu_memory", "used_memory", "MiB", "what it holds", used_memory},
    };
    return fields;
}

}  // namespace cuslice::fake
