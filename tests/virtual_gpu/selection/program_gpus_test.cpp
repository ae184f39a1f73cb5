// SPDX-License-Identifier: Apache-2.0
// The physical GPUs of a program where some of them are split, as a made-up NVML lists and names them.
#include "virtual_gpu/selection/program_gpus.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "virtual_gpu/driver/nvml_table.h"

using namespace cuslice;

namespace {

struct Gpu {
    std::string uuid;
    bool listed = true;     // a MIG instance can be named, and need not be
    bool has_index = true;  // else it has no identity
};
std::vector<Gpu> host;

nvmlDevice_t handle_of(size_t i) { return reinterpret_cast<nvmlDevice_t>((i + 1) << 8); }
size_t place_of(nvmlDevice_t handle) { return (reinterpret_cast<size_t>(handle) >> 8) - 1; }

template <typename F>
void put(NvmlFunction function, F* implementation) {
    cuslice_physical_nvml_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

struct Scene {
    explicit Scene(std::vector<Gpu> there) {
        host = std::move(there);
        put(
            NvmlFunction::nvmlInit_v2, +[]() -> nvmlReturn_t { return NVML_SUCCESS; });
        put(
            NvmlFunction::nvmlDeviceGetCount_v2, +[](unsigned* count) -> nvmlReturn_t {
                const auto listed = std::count_if(host.begin(), host.end(), [](const Gpu& gpu) { return gpu.listed; });
                *count = static_cast<unsigned>(listed);
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetHandleByIndex_v2, +[](unsigned index, nvmlDevice_t* handle) -> nvmlReturn_t {
                *handle = handle_of(index);
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetHandleByUUID, +[](const char* uuid, nvmlDevice_t* handle) -> nvmlReturn_t {
                for (size_t i = 0; i < host.size(); i++)
                    if (host[i].uuid == uuid)
                        return *handle = handle_of(i), NVML_SUCCESS;
                return NVML_ERROR_NOT_FOUND;
            });
        put(
            NvmlFunction::nvmlDeviceGetUUID, +[](nvmlDevice_t gpu, char* text, unsigned size) -> nvmlReturn_t {
                std::snprintf(text, size, "%s", host[place_of(gpu)].uuid.c_str());
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetIndex, +[](nvmlDevice_t gpu, unsigned* index) -> nvmlReturn_t {
                *index = static_cast<unsigned>(place_of(gpu));
                return host[place_of(gpu)].has_index ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
            });
        put(
            NvmlFunction::nvmlDeviceGetPciInfo_v3, +[](nvmlDevice_t gpu, nvmlPciInfo_t* info) -> nvmlReturn_t {
                std::snprintf(info->busId, sizeof info->busId, "0000:%02zx:00.0", place_of(gpu));
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetMemoryInfo, +[](nvmlDevice_t gpu, nvmlMemory_t* memory) -> nvmlReturn_t {
                memory->total = 1000 * (place_of(gpu) + 1);
                memory->used = 7;
                return NVML_SUCCESS;
            });
    }
    ~Scene() {
        using enum NvmlFunction;
        for (const NvmlFunction function :
             {nvmlInit_v2, nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByUUID,
              nvmlDeviceGetUUID, nvmlDeviceGetIndex, nvmlDeviceGetPciInfo_v3, nvmlDeviceGetMemoryInfo})
            put(function, static_cast<void (*)()>(nullptr));
    }
    /// With the list that a launcher has chosen, null if there is none, and the setting `gpus` of this process.
    bool read(const char* chosen = nullptr, const char* setting = nullptr) {
        const auto settings = std::make_unique<Settings>();
        if (setting)
            REQUIRE(add_list(*settings, Key::gpus, {Source::environment, 0}, "CUSLICE_GPUS", setting, error));
        const std::string line = "CUSLICE_VISIBLE_DEVICES=" + std::string(chosen ? chosen : "");
        const char* const environment[] = {chosen ? line.c_str() : nullptr, nullptr};
        gpus = std::make_unique<ProgramGpus>();
        return gpus->read(*settings, environment, error);
    }
    std::vector<std::string> uuids() const {
        std::vector<std::string> all;
        for (const GpuIdentity& gpu : gpus->all())
            all.emplace_back(gpu.uuid);
        return all;
    }
    ConfigError error;
    std::unique_ptr<ProgramGpus> gpus;
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("without a choice a split program's GPUs are all of the host, in PCI order, with what NVML says of each") {
    Scene scene({{"GPU-10aa"}, {"GPU-20aa"}, {"GPU-30aa"}});
    REQUIRE(scene.read());
    CHECK_FALSE(scene.gpus->chosen);
    REQUIRE(scene.uuids() == Texts{"GPU-10aa", "GPU-20aa", "GPU-30aa"});
    for (size_t i = 0; i < 3; i++) {
        CHECK(scene.gpus->identities[i].index == static_cast<int>(i));
        CHECK(scene.gpus->identities[i].pci == "0000:0" + std::to_string(i) + ":00.0");
        CHECK(scene.gpus->totals[i] == 1000 * (i + 1));
        CHECK(scene.gpus->handles[i] == handle_of(i));
        CHECK(scene.gpus->find(host[i].uuid.c_str()) == static_cast<int>(i));
    }
    CHECK(scene.gpus->find("GPU-40aa") == -1);
}

TEST_CASE("chosen GPUs are a split program's in their order, once each, and those that aren't there are left out") {
    Scene scene({{"GPU-10aa"}, {"GPU-20aa"}, {"GPU-30aa"}});
    REQUIRE(scene.read("GPU-30aa,GPU-99aa,GPU-10aa,GPU-30aa"));
    CHECK(scene.gpus->chosen);
    REQUIRE(scene.uuids() == Texts{"GPU-30aa", "GPU-10aa"});
    CHECK(scene.gpus->identities[0].index == 2);
    CHECK(scene.gpus->handles[1] == handle_of(0));
    CHECK(scene.gpus->totals[1] == 1000);
    REQUIRE(scene.read(""));
    CHECK(scene.gpus->chosen);
    CHECK(scene.gpus->count == 0);
    REQUIRE(scene.read(nullptr, "1"));
    CHECK(scene.gpus->chosen);
    CHECK(scene.uuids() == Texts{"GPU-20aa"});
    CHECK_FALSE(scene.read(nullptr, "7"));
    CHECK(scene.gpus->count == 0);
}

TEST_CASE("a MIG instance that NVML doesn't list is a split program's if it is chosen, with its UUID alone") {
    Scene scene({{"GPU-10aa"}, {"MIG-20aa", false}});
    REQUIRE(scene.read("MIG-20aa,GPU-10aa"));
    REQUIRE(scene.uuids() == Texts{"MIG-20aa", "GPU-10aa"});
    CHECK(scene.gpus->identities[0].index == -1);
    CHECK(std::string(scene.gpus->identities[0].pci).empty());
    CHECK(scene.gpus->totals[0] == 2000);
    CHECK(scene.gpus->identities[1].index == 0);
    REQUIRE(scene.read());
    CHECK(scene.uuids() == Texts{"GPU-10aa"});
}

TEST_CASE("a GPU that NVML can't name is none, and the one behind it is there") {
    Scene scene({{"GPU-10aa", true, false}, {"GPU-20aa"}});
    REQUIRE(scene.read());
    CHECK(scene.uuids() == Texts{"GPU-20aa"});
    CHECK(scene.gpus->identities[0].index == 1);
}

TEST_CASE("a name that is longer than a UUID is no GPU's, and the longest one is") {
    const std::string longest = "GPU-" + std::string(sizeof(GpuIdentity::uuid) - 5, 'a');
    Scene scene({{longest}, {longest + "a"}});
    REQUIRE(scene.read((longest + "a").c_str()));
    CHECK(scene.gpus->count == 0);
    REQUIRE(scene.read((longest + "a," + longest).c_str()));
    CHECK(scene.uuids() == Texts{longest});
}

TEST_CASE("a host may have as many GPUs as a program can use, and more") {
    for (const size_t count : {64u, 70u}) {
        std::vector<Gpu> gpus;
        for (size_t i = 0; i < count; i++)
            gpus.push_back({"GPU-" + std::to_string(1000 + i)});
        Scene scene(gpus);
        REQUIRE(scene.read());
        REQUIRE(scene.gpus->count == 64);
        CHECK(scene.uuids().back() == "GPU-1063");
        CHECK(scene.gpus->find("GPU-1063") == 63);
        std::string all;
        for (const Gpu& gpu : gpus)
            all += (all.empty() ? "" : ",") + gpu.uuid;
        REQUIRE(scene.read(all.c_str()));
        REQUIRE(scene.gpus->count == 64);
        CHECK(scene.uuids().back() == "GPU-1063");
    }
}
