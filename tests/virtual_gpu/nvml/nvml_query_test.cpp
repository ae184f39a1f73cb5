// SPDX-License-Identifier: Apache-2.0
// Queries to NVML, on hosts that the tests make up: one whose driver is new, an old one, and MIG.
#include "virtual_gpu/nvml/nvml_query.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace cuslice;

namespace {

struct Gpu {
    std::string uuid = "GPU-00000000-1111-2222-3333-444444444444", pci = "00000000:81:00.0";
    unsigned index = 0;
    bool divided = false;
    Gpu* whole = nullptr;           // of an instance
    std::vector<Gpu*> instances{};  // null: nothing is in that place
    nvmlDevice_t handle() { return reinterpret_cast<nvmlDevice_t>(this); }
};

Gpu& gpu_of(nvmlDevice_t handle) { return *reinterpret_cast<Gpu*>(handle); }

/// Its functions, as nvml_query.h calls them.
struct MadeUpNvml {
    std::vector<Gpu*> gpus;
    std::set<std::string> failing{};  // functions
    nvmlReturn_t newer = NVML_SUCCESS, older = NVML_SUCCESS;
    bool knows_mig = true;

    nvmlReturn_t answer(const char* function) const {
        return failing.count(function) ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
    }
    nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) const {
        *count = static_cast<unsigned>(gpus.size());
        return answer("count");
    }
    nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* handle) const {
        if (index >= gpus.size() || !gpus[index])
            return NVML_ERROR_GPU_IS_LOST;
        *handle = gpus[index]->handle();
        return NVML_SUCCESS;
    }
    nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t gpu, unsigned* index) const {
        if (gpu_of(gpu).whole)
            return NVML_ERROR_INVALID_ARGUMENT;
        *index = gpu_of(gpu).index;
        return answer("index");
    }
    nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t gpu, char* text, unsigned size) const {
        std::snprintf(text, size, "%s", gpu_of(gpu).uuid.c_str());
        return answer("uuid");
    }
    nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t gpu, nvmlPciInfo_t* info) const {
        if (gpu_of(gpu).whole)
            return NVML_ERROR_INVALID_ARGUMENT;
        std::snprintf(info->busId, sizeof info->busId, "%s", gpu_of(gpu).pci.c_str());
        return answer("pci");
    }
    nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, nvmlMemory_v2_t* memory) const {
        if (newer != NVML_SUCCESS)
            return newer;
        if (memory->version != nvml::struct_version<nvmlMemory_v2_t>(2))
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        memory->total = 1000, memory->reserved = 30, memory->used = 400, memory->free = 570;
        return NVML_SUCCESS;
    }
    nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) const {
        if (older != NVML_SUCCESS)
            return older;
        memory->total = 900, memory->used = 300, memory->free = 600;
        return NVML_SUCCESS;
    }
    nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t gpu, unsigned* now, unsigned* pending) const {
        if (!knows_mig)
            return NVML_ERROR_NOT_SUPPORTED;
        *now = gpu_of(gpu).divided;
        *pending = !gpu_of(gpu).divided;
        return NVML_SUCCESS;
    }
    nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t gpu, unsigned* count) const {
        *count = static_cast<unsigned>(gpu_of(gpu).instances.size());
        return answer("places");
    }
    nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t gpu, unsigned place, nvmlDevice_t* instance) const {
        if (!gpu_of(gpu).instances.at(place))
            return NVML_ERROR_NOT_FOUND;
        *instance = gpu_of(gpu).instances[place]->handle();
        return NVML_SUCCESS;
    }
    nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t instance, nvmlDevice_t* gpu) const {
        *gpu = gpu_of(instance).whole->handle();
        return answer("whole");
    }
};

using Devices = std::vector<nvmlDevice_t>;

Devices devices_of(const MadeUpNvml& nvml, size_t room) {
    Devices found(room);
    const size_t count = query_devices(nvml, found);
    REQUIRE(count <= room);
    found.resize(count);
    return found;
}

}  // namespace

TEST_CASE("what the driver keeps for itself is in neither figure of a GPU's memory") {
    MadeUpNvml host;
    GpuMemory memory;
    REQUIRE(query_memory(host, nullptr, memory) == NVML_SUCCESS);
    CHECK(memory.total == 970);
    CHECK(memory.used == 400);
    host.newer = NVML_ERROR_FUNCTION_NOT_FOUND;
    REQUIRE(query_memory(host, nullptr, memory) == NVML_SUCCESS);
    CHECK(memory.total == 900);
    CHECK(memory.used == 300);
}

TEST_CASE("a failure to tell a GPU's memory is passed on, and an older function is no way round it") {
    MadeUpNvml host;
    GpuMemory memory{1, 2};
    host.newer = NVML_ERROR_GPU_IS_LOST;
    CHECK(query_memory(host, nullptr, memory) == NVML_ERROR_GPU_IS_LOST);
    host.newer = NVML_ERROR_FUNCTION_NOT_FOUND;
    host.older = NVML_ERROR_NOT_SUPPORTED;
    CHECK(query_memory(host, nullptr, memory) == NVML_ERROR_NOT_SUPPORTED);
    CHECK(memory.total == 1);
    CHECK(memory.used == 2);
}

TEST_CASE("a GPU is named by index, UUID and PCI id, and a MIG instance has no index and its GPU's PCI id") {
    Gpu gpu{.index = 3}, instance{.uuid = "MIG-55555555-1111-2222-3333-444444444444", .pci = "none", .whole = &gpu};
    MadeUpNvml host{{&gpu}};
    GpuIdentity identity;
    REQUIRE(query_identity(host, gpu.handle(), identity));
    CHECK(identity.index == 3);
    CHECK(identity.uuid == gpu.uuid);
    CHECK(identity.pci == gpu.pci);
    REQUIRE(query_identity(host, instance.handle(), identity));
    CHECK(identity.index == -1);
    CHECK(identity.uuid == instance.uuid);
    CHECK(identity.pci == gpu.pci);
    for (const char* function : {"uuid", "index", "pci"}) {
        CAPTURE(function);
        host.failing = {function};
        CHECK_FALSE(query_identity(host, gpu.handle(), identity));
    }
    host.failing = {"whole"};
    CHECK_FALSE(query_identity(host, instance.handle(), identity));
    CHECK(query_identity(host, gpu.handle(), identity));
}

TEST_CASE("a name that is longer than there is room for is none, and one that just fits is whole") {
    GpuIdentity identity;
    Gpu gpu;
    const MadeUpNvml host{{&gpu}};
    gpu.uuid = "GPU-" + std::string(sizeof identity.uuid - 5, 'a');
    gpu.pci = std::string(sizeof identity.pci - 1, '7');
    REQUIRE(query_identity(host, gpu.handle(), identity));
    CHECK(identity.uuid == gpu.uuid);
    CHECK(identity.pci == gpu.pci);
    gpu.uuid += 'a';
    CHECK_FALSE(query_identity(host, gpu.handle(), identity));
    gpu.uuid.pop_back();
    gpu.pci += '7';
    CHECK_FALSE(query_identity(host, gpu.handle(), identity));
}

TEST_CASE("what CUDA can run on is each GPU that is there, and of one that MIG divides its instances") {
    Gpu first, second, third, a, b;
    MadeUpNvml host{{&first, nullptr, &second, &third}};
    second.divided = true;
    second.instances = {&a, nullptr, &b, nullptr};
    CHECK(devices_of(host, 64) == Devices{first.handle(), a.handle(), b.handle(), third.handle()});
    host.failing = {"places"};
    CHECK(devices_of(host, 64) == Devices{first.handle(), third.handle()});
    host.failing = {"count"};
    CHECK(devices_of(host, 64).empty());
    // An NVML that knows nothing of MIG, or a GPU that can't be divided.
    host.failing.clear();
    host.knows_mig = false;
    CHECK(devices_of(host, 64) == Devices{first.handle(), second.handle(), third.handle()});
}

TEST_CASE("no more devices are listed than there is room for, and nothing is written beyond it") {
    Gpu first, second, third, a, b;
    second.divided = true;
    second.instances = {&a, &b};
    const MadeUpNvml host{{&first, &second, &third}};
    const Devices all{first.handle(), a.handle(), b.handle(), third.handle()};
    for (size_t room = 0; room <= all.size(); room++) {
        std::array<nvmlDevice_t, 5> found{};
        REQUIRE(query_devices(host, std::span(found).first(room)) == room);
        for (size_t i = 0; i < found.size(); i++)
            CHECK(found[i] == (i < room ? all[i] : nullptr));
    }
}
