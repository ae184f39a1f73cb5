// SPDX-License-Identifier: Apache-2.0
// Commands that call the management library as a program built without nvml.h does.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/preload/guest/guest.h"
#include "virtual_gpu/driver/nvml.h"

namespace guest {
namespace {

namespace nvml = cuslice::nvml;

std::string library_name = "libnvidia-ml.so.1";

template <typename Function>
Function* symbol(const char* name) {
    static void* const library = dlopen(library_name.c_str(), RTLD_NOW);
    return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}
#define GUEST_NVML(name) symbol<decltype(::name)>(#name)

nvmlDevice_t device(const std::string& index) {
    nvmlDevice_t found = nullptr;
    GUEST_NVML(nvmlDeviceGetHandleByIndex_v2)(static_cast<unsigned>(number(index)), &found);
    return found;
}

// A function by its name, called with a GPU or without one and with room for whatever it answers. Its result, and what
// there is to read of the answer.
std::string call(const std::string& name, nvmlDevice_t first) {
    static unsigned char room[2][1 << 16];
    std::memset(room, 0, sizeof room);
    using Any = nvmlReturn_t(nvmlDevice_t, void*, void*, void*, void*, void*);
    const auto function = symbol<Any>(name.c_str());
    if (!function)
        return "none";
    return std::to_string(static_cast<int>(function(first, room[0], room[1], room[0], room[1], room[0])));
}

std::string text_of(nvmlReturn_t result, const std::string& text) {
    return std::to_string(static_cast<int>(result)) + " " + text;
}

std::string address(unsigned domain, unsigned bus, unsigned device) {
    char text[64];
    std::snprintf(text, sizeof text, " %x:%x:%x", domain, bus, device);
    return text;
}

// The index of a GPU that was found.
std::string found(nvmlReturn_t result, const nvmlDevice_t& device) {
    unsigned index = 0;
    if (result == NVML_SUCCESS)
        result = GUEST_NVML(nvmlDeviceGetIndex)(device, &index);
    return text_of(result, std::to_string(index));
}

// All of the GPU's PCI address, in all of its forms.
std::string pci(nvmlDevice_t device) {
    nvmlPciInfo_t info{};
    nvml::PciInfoV2 first{}, second{};
    nvmlPciInfoExt_v1_t extended{};
    extended.version = nvml::struct_version<nvmlPciInfoExt_v1_t>(1);
    const nvmlReturn_t results[] = {
        GUEST_NVML(nvmlDeviceGetPciInfo_v3)(device, &info),
        GUEST_NVML(nvmlDeviceGetPciInfo)(device, reinterpret_cast<nvmlPciInfo_t*>(&first)),
        GUEST_NVML(nvmlDeviceGetPciInfo_v2)(device, reinterpret_cast<nvmlPciInfo_t*>(&second)),
        GUEST_NVML(nvmlDeviceGetPciInfoExt)(device, &extended)};
    std::string said;
    for (const nvmlReturn_t result : results)
        said += std::to_string(static_cast<int>(result));
    for (const char* text : {info.busId, info.busIdLegacy, first.busId, second.busId, extended.busId})
        said += std::string(" ") + text;
    said += address(info.domain, info.bus, info.device) + address(first.domain, first.bus, first.device);
    said += address(second.domain, second.bus, second.device);
    return said + address(extended.domain, extended.bus, extended.device);
}

// The commands that tell GPUs apart.
void add_identity_commands(Commands& commands) {
    commands["nvmlcount"] = [](Program&, const Words&) {
        unsigned count = 0, before = 0;
        const auto result = GUEST_NVML(nvmlDeviceGetCount_v2)(&count);
        const auto older = GUEST_NVML(nvmlDeviceGetCount)(&before);
        return answer(static_cast<CUresult>(result), count, static_cast<int>(older), before);
    };
    // nvmluuid INDEX [ROOM]
    commands["nvmluuid"] = [](Program&, const Words& w) {
        char text[96] = "";
        const size_t room = w.size() > 1 ? number(w.at(1)) : sizeof text;
        const auto result = GUEST_NVML(nvmlDeviceGetUUID)(device(w.at(0)), text, static_cast<unsigned>(room));
        return text_of(result, text);
    };
    // nvmlindex INDEX
    commands["nvmlindex"] = [](Program&, const Words& w) { return found(NVML_SUCCESS, device(w.at(0))); };
    // nvmlpci INDEX: the results, the forms of the bus id, and the numbers in each structure
    commands["nvmlpci"] = [](Program&, const Words& w) { return pci(device(w.at(0))); };
    // nvmlserial INDEX
    commands["nvmlserial"] = [](Program&, const Words& w) {
        char text[64] = "";
        const auto result = GUEST_NVML(nvmlDeviceGetSerial)(device(w.at(0)), text, sizeof text);
        return text_of(result, text);
    };
    // nvmlby FUNCTION TEXT: the index of the GPU with this UUID, PCI id or serial number
    commands["nvmlby"] = [](Program&, const Words& w) {
        nvmlDevice_t device = nullptr;
        const auto by = symbol<decltype(::nvmlDeviceGetHandleByUUID)>(("nvmlDeviceGetHandleBy" + w.at(0)).c_str());
        const auto result = by(w.at(1).c_str(), &device);
        return found(result, device);
    };
    // nvmlbybytes UUID: the same by the UUID's bytes, and in text in a structure
    commands["nvmlbybytes"] = [](Program&, const Words& w) {
        nvmlDevice_t device = nullptr;
        nvmlUUID_v1_t uuid{};
        uuid.version = nvml::struct_version<nvmlUUID_v1_t>(1);
        uuid.type = NVML_UUID_TYPE_ASCII;
        w.at(0).copy(uuid.value.str, sizeof uuid.value.str - 1);
        std::string said = found(GUEST_NVML(nvmlDeviceGetHandleByUUIDV)(&uuid, &device), device);
        uuid = {uuid.version, NVML_UUID_TYPE_BINARY, {}};
        std::string digits = w.at(0).substr(4);
        digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
        for (size_t i = 0; i < 16; i++)
            uuid.value.bytes[i] = static_cast<unsigned char>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
        return said + " " + found(GUEST_NVML(nvmlDeviceGetHandleByUUIDV)(&uuid, &device), device);
    };
    // nvmlpair INDEX INDEX [WAY]: how near two GPUs are, whether each reaches the other, whether they are on one board
    commands["nvmlpair"] = [](Program&, const Words& w) {
        const nvmlDevice_t one = device(w.at(0)), other = device(w.at(1));
        const auto way = static_cast<nvmlGpuP2PCapsIndex_t>(w.size() > 2 ? number(w.at(2)) : 0);
        nvmlGpuTopologyLevel_t level{};
        nvmlGpuP2PStatus_t status{};
        int same = 0;
        const int results = GUEST_NVML(nvmlDeviceGetTopologyCommonAncestor)(one, other, &level) +
                            GUEST_NVML(nvmlDeviceGetP2PStatus)(one, other, way, &status) +
                            GUEST_NVML(nvmlDeviceOnSameBoard)(one, other, &same);
        return answer(static_cast<CUresult>(results), static_cast<int>(level), static_cast<int>(status), same);
    };
    // nvmlcall FUNCTION [INDEX]: what a function says to a GPU, or to none, and room for its answers
    commands["nvmlcall"] = [](Program&, const Words& w) {
        return call(w.at(0), w.size() > 1 ? device(w.at(1)) : nullptr);
    };
    // nvmllinks INDEX: the results of all questions, how many links are active, their version, what the fabric has
    // found, how many links a field says there are; of the machine, whether confidential computing is on
    commands["nvmllinks"] = [](Program&, const Words& w) {
        const nvmlDevice_t gpu = device(w.at(0));
        unsigned active = 0, version = 0;
        int results = GUEST_NVML(nvmlDeviceGetNvLinkVersion)(gpu, 0, &version);
        for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
            nvmlEnableState_t state = NVML_FEATURE_DISABLED;
            GUEST_NVML(nvmlDeviceGetNvLinkState)(gpu, link, &state);
            active += state == NVML_FEATURE_ENABLED ? 1 : 0;
        }
        nvmlGpuFabricInfoV_t fabric{};
        fabric.version = nvml::struct_version<nvmlGpuFabricInfo_v3_t>(3);
        results += GUEST_NVML(nvmlDeviceGetGpuFabricInfoV)(gpu, &fabric);
        nvmlFieldValue_t field{};
        field.fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT;
        results += GUEST_NVML(nvmlDeviceGetFieldValues)(gpu, 1, &field) + field.nvmlReturn;
        nvmlConfComputeSystemState_t confidential{7, 7, 7};
        results += GUEST_NVML(nvmlSystemGetConfComputeState)(&confidential);
        return answer(static_cast<CUresult>(results), active, version, fabric.state, field.value.uiVal,
                      confidential.ccFeature);
    };
    // nvmlabout INDEX: what of a GPU is the same for all its parts
    commands["nvmlabout"] = [](Program&, const Words& w) {
        const nvmlDevice_t gpu = device(w.at(0));
        char name[96] = "";
        unsigned minor = 0, celsius = 0;
        int major = 0, lesser = 0;
        unsigned long long errors = 0;
        const int results =
            GUEST_NVML(nvmlDeviceGetName)(gpu, name, sizeof name) + GUEST_NVML(nvmlDeviceGetMinorNumber)(gpu, &minor) +
            GUEST_NVML(nvmlDeviceGetTemperature)(gpu, NVML_TEMPERATURE_GPU, &celsius) +
            GUEST_NVML(nvmlDeviceGetCudaComputeCapability)(gpu, &major, &lesser) +
            GUEST_NVML(nvmlDeviceGetTotalEccErrors)(gpu, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &errors);
        return answer(static_cast<CUresult>(results), minor, major, lesser) + " " + name;
    };
}

}  // namespace

void add_nvml_commands(Commands& commands) {
    add_identity_commands(commands);
    commands["nvml"] = [](Program&, const Words&) -> std::string {
        const auto init = GUEST_NVML(nvmlInit_v2);
        return init ? std::to_string(static_cast<int>(init())) : "no library";
    };
    // nvmlname NAME: by which NVML is opened, before it is
    commands["nvmlname"] = [](Program&, const Words& w) {
        library_name = w.at(0);
        return answer(CUDA_SUCCESS);
    };
    commands["nvmlshutdown"] = [](Program&, const Words&) {
        return answer(static_cast<CUresult>(GUEST_NVML(nvmlShutdown)()));
    };
    // nvmldriver: what NVML answers of the driver's CUDA version, which it also does before it is initialised
    commands["nvmldriver"] = [](Program&, const Words&) {
        int version = 0;
        const auto result = GUEST_NVML(nvmlSystemGetCudaDriverVersion)(&version);
        return answer(static_cast<CUresult>(result), version);
    };
    // nvmlmemory INDEX: total, free, used
    commands["nvmlmemory"] = [](Program&, const Words& w) {
        nvmlMemory_t memory{};
        const auto result = GUEST_NVML(nvmlDeviceGetMemoryInfo)(device(w.at(0)), &memory);
        return answer(static_cast<CUresult>(result), memory.total, memory.free, memory.used);
    };
    // nvmlprocesses INDEX [ROOM]: the pids in NVML's list of those that compute, in order; what it says of so little
    // room, and how much it would take
    commands["nvmlprocesses"] = [](Program&, const Words& w) {
        nvmlProcessInfo_t infos[64];
        unsigned count = w.size() > 1 ? static_cast<unsigned>(number(w.at(1))) : 64;
        const auto result = GUEST_NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(w.at(0)), &count, infos);
        std::string said = std::to_string(static_cast<int>(result));
        if (result != NVML_SUCCESS)
            return said + " " + std::to_string(count);
        std::sort(infos, infos + count, [](const auto& a, const auto& b) { return a.pid < b.pid; });
        for (unsigned i = 0; i < count; i++)
            said += " " + std::to_string(infos[i].pid);
        return said;
    };
    // nvmlheld INDEX: what NVML says that this process holds; 0 if it isn't in the list
    commands["nvmlheld"] = [](Program&, const Words& w) {
        nvmlProcessInfo_t infos[64];
        unsigned count = 64;
        unsigned long long held = 0;
        const auto result = GUEST_NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(w.at(0)), &count, infos);
        for (unsigned i = 0; result == NVML_SUCCESS && i < count; i++)
            if (infos[i].pid == static_cast<unsigned>(getpid()))
                held += infos[i].usedGpuMemory;
        return answer(static_cast<CUresult>(result), held);
    };
    // nvmlmemory2 INDEX: total, free, used, reserved
    commands["nvmlmemory2"] = [](Program&, const Words& w) {
        nvmlMemory_v2_t memory{};
        memory.version = sizeof(memory) | 2 << 24;
        const auto result = GUEST_NVML(nvmlDeviceGetMemoryInfo_v2)(device(w.at(0)), &memory);
        return answer(static_cast<CUresult>(result), memory.total, memory.free, memory.used, memory.reserved);
    };
}

}  // namespace guest
