// What the management library says, asked as a program asks it that was built without nvml.h.
#include <dlfcn.h>

#include <algorithm>

#include "tests/preload/guest/guest.h"
#include "virtual_gpu/driver/nvml.h"

namespace guest {
namespace {

namespace nvml = cuslice::nvml;

template <typename Function>
Function* symbol(const char* name) {
    static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}
#define GUEST_NVML(name) symbol<nvml::functions::name>(#name)

nvml::Device device(const std::string& index) {
    nvml::Device found = nullptr;
    GUEST_NVML(nvmlDeviceGetHandleByIndex_v2)(static_cast<unsigned>(number(index)), &found);
    return found;
}

}  // namespace

void add_nvml_commands(Commands& commands) {
    commands["nvml"] = [](Program&, const Words&) -> std::string {
        const auto init = GUEST_NVML(nvmlInit_v2);
        return init ? std::to_string(static_cast<int>(init())) : "no library";
    };
    // nvmlmemory INDEX: total, free, used
    commands["nvmlmemory"] = [](Program&, const Words& w) {
        nvml::Memory memory{};
        const auto result = GUEST_NVML(nvmlDeviceGetMemoryInfo)(device(w.at(0)), &memory);
        return answer(static_cast<CUresult>(result), memory.total, memory.free, memory.used);
    };
    // nvmlprocesses INDEX [ROOM]: the pids in NVML's list of those that compute, in order; what it says of so little
    // room, and how much it would take
    commands["nvmlprocesses"] = [](Program&, const Words& w) {
        nvml::ProcessInfo infos[64];
        unsigned count = w.size() > 1 ? static_cast<unsigned>(number(w.at(1))) : 64;
        const auto result = GUEST_NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(w.at(0)), &count, infos);
        std::string said = std::to_string(static_cast<int>(result));
        if (result != nvml::SUCCESS) return said + " " + std::to_string(count);
        std::sort(infos, infos + count, [](const auto& a, const auto& b) { return a.pid < b.pid; });
        for (unsigned i = 0; i < count; i++) said += " " + std::to_string(infos[i].pid);
        return said;
    };
    // nvmlmemory2 INDEX: total, free, used, reserved
    commands["nvmlmemory2"] = [](Program&, const Words& w) {
        nvml::MemoryV2 memory{};
        memory.version = sizeof(memory) | 2 << 24;
        const auto result = GUEST_NVML(nvmlDeviceGetMemoryInfo_v2)(device(w.at(0)), &memory);
        return answer(static_cast<CUresult>(result), memory.total, memory.free, memory.used, memory.reserved);
    };
}

}  // namespace guest
