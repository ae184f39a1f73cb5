// SPDX-License-Identifier: Apache-2.0
// NVML's readings of GPUs, and the calls that its own library gets for them.
#include "virtual_gpu/nvml/nvml_gpu.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "virtual_gpu/driver/nvml_table.h"

using namespace cuslice;

namespace {

struct List {
    nvmlReturn_t answer = NVML_SUCCESS;
    std::vector<nvmlProcessInfo_t> processes{};
};

/// The host of the test that runs.
struct Host {
    std::vector<std::string> names{"NVIDIA Made-up"};
    bool named = true;
    unsigned initialised = 0;
    List compute, mps;
    bool interrupted = false;  // a signal comes in the middle of each call
};
Host host;

/// Inside NVML, and what a handler has seen of that.
struct Calls {
    volatile sig_atomic_t inside = 0, handled = 0, handled_inside = 0;
};
Calls calls;

void handle(int) {
    calls.handled = calls.handled + 1;
    if (calls.inside)
        calls.handled_inside = calls.handled_inside + 1;
}

void middle_of_call() {
    if (!host.interrupted)
        return;
    calls.inside = 1;
    raise(SIGUSR1);
    calls.inside = 0;
}

nvmlDevice_t handle_of(size_t index) { return reinterpret_cast<nvmlDevice_t>((index + 1) << 8); }
size_t index_of(nvmlDevice_t handle) { return (reinterpret_cast<size_t>(handle) >> 8) - 1; }

template <List Host::*kList>
nvmlReturn_t processes(nvmlDevice_t, unsigned* count, nvmlProcessInfo_t* infos) {
    middle_of_call();
    const List& list = host.*kList;
    if (list.answer != NVML_SUCCESS)
        return list.answer;
    const unsigned room = *count;
    *count = static_cast<unsigned>(list.processes.size());
    if (*count > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        infos[i] = list.processes[i];
    return NVML_SUCCESS;
}

nvmlProcessInfo_t process(unsigned pid, unsigned long long bytes) {
    nvmlProcessInfo_t made{};
    made.pid = pid;
    made.usedGpuMemory = bytes;
    return made;
}

template <typename F>
void put(NvmlFunction function, F* implementation) {
    cuslice_physical_nvml_slots[static_cast<size_t>(function)] = reinterpret_cast<void*>(implementation);
}

struct Scene {
    Scene() {
        host = {};
        calls.handled = 0;
        calls.handled_inside = 0;
        put(
            NvmlFunction::nvmlInit_v2, +[]() -> nvmlReturn_t {
                middle_of_call();
                host.initialised++;
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetCount_v2, +[](unsigned* count) -> nvmlReturn_t {
                middle_of_call();
                *count = static_cast<unsigned>(host.names.size());
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetHandleByIndex_v2, +[](unsigned index, nvmlDevice_t* handle) -> nvmlReturn_t {
                *handle = handle_of(index);
                return NVML_SUCCESS;
            });
        put(
            NvmlFunction::nvmlDeviceGetHandleByUUID, +[](const char* uuid, nvmlDevice_t* handle) -> nvmlReturn_t {
                middle_of_call();
                *handle = handle_of(0);
                return std::string(uuid) == "GPU-made-up" ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
            });
        put(
            NvmlFunction::nvmlDeviceGetName, +[](nvmlDevice_t gpu, char* text, unsigned size) -> nvmlReturn_t {
                middle_of_call();
                std::snprintf(text, size, "%s", host.names.at(index_of(gpu)).c_str());
                return host.named ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
            });
        put(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3, processes<&Host::compute>);
        put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3, processes<&Host::mps>);
    }
    ~Scene() {
        for (const NvmlFunction function :
             {NvmlFunction::nvmlInit_v2, NvmlFunction::nvmlDeviceGetCount_v2,
              NvmlFunction::nvmlDeviceGetHandleByIndex_v2, NvmlFunction::nvmlDeviceGetHandleByUUID,
              NvmlFunction::nvmlDeviceGetName, NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3,
              NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v2,
              NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3,
              NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v2})
            put(function, static_cast<void (*)()>(nullptr));
    }
};

const NvmlGpu kGpu(handle_of(0));

}  // namespace

TEST_CASE("a process holds what the list of its GPU says, and of a client of MPS what the other list says") {
    const Scene scene;
    uint64_t bytes = 1;
    host.compute.processes = {process(7, 70), process(8, 80), process(9, nvml::kValueNotAvailable)};
    host.mps.processes = {process(8, 88), process(10, 100)};
    CHECK(kGpu.used_by_process(8, &bytes) == Reading::ok);
    CHECK(bytes == 80);
    CHECK(kGpu.used_by_process(10, &bytes) == Reading::ok);
    CHECK(bytes == 100);
    CHECK(kGpu.used_by_process(9, &bytes) == Reading::failed);
    CHECK(kGpu.used_by_process(11, &bytes) == Reading::absent);
    CHECK(bytes == 100);
    CHECK(NvmlGpu().used_by_process(8, &bytes) == Reading::failed);
}

TEST_CASE("a list that can't be had says nothing of a process, but that of MPS's clients can be missing") {
    const Scene scene;
    uint64_t bytes = 0;
    host.compute.processes = {process(8, 80)};
    host.mps.answer = NVML_ERROR_NOT_SUPPORTED;
    CHECK(kGpu.used_by_process(8, &bytes) == Reading::ok);
    CHECK(kGpu.used_by_process(9, &bytes) == Reading::absent);
    host.compute.answer = NVML_ERROR_UNKNOWN;
    CHECK(kGpu.used_by_process(8, &bytes) == Reading::failed);
    // More than there is room for.
    host.compute = {NVML_SUCCESS, std::vector<nvmlProcessInfo_t>(600, process(7, 70))};
    CHECK(kGpu.used_by_process(7, &bytes) == Reading::failed);
    host.compute.processes.resize(512);
    host.compute.processes.back().pid = 8;
    CHECK(kGpu.used_by_process(8, &bytes) == Reading::ok);
}

TEST_CASE("a driver that is too old for the newest lists is asked for the older ones") {
    const Scene scene;
    uint64_t bytes = 0;
    host.compute.processes = {process(8, 80)};
    host.mps.processes = {process(9, 90)};
    put(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3, static_cast<void (*)()>(nullptr));
    put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3, static_cast<void (*)()>(nullptr));
    CHECK(kGpu.used_by_process(8, &bytes) == Reading::failed);
    put(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v2, processes<&Host::compute>);
    CHECK(kGpu.used_by_process(8, &bytes) == Reading::ok);
    CHECK(bytes == 80);
    CHECK(kGpu.used_by_process(9, &bytes) == Reading::absent);
    put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v2, processes<&Host::mps>);
    CHECK(kGpu.used_by_process(9, &bytes) == Reading::ok);
    CHECK(bytes == 90);
}

TEST_CASE("a GPU is opened by its UUID, and one that isn't there has no readings, no identity and no name") {
    const Scene scene;
    NvmlGpu gpu;
    CHECK(gpu.open("GPU-made-up"));
    CHECK(gpu.handle() == handle_of(0));
    char name[96] = "";
    CHECK(gpu.name(name, sizeof name));
    CHECK(std::string(name) == "NVIDIA Made-up");
    CHECK_FALSE(gpu.open("GPU-other"));
    CHECK(gpu.handle() == nullptr);
    uint64_t bytes = 0;
    GpuIdentity identity;
    CHECK(gpu.used_by_all(&bytes) == Reading::failed);
    CHECK_FALSE(gpu.identity(&identity));
    CHECK_FALSE(gpu.name(name, sizeof name));
    host.named = false;
    CHECK_FALSE(kGpu.name(name, sizeof name));
}

TEST_CASE("the host's GPUs are listed in their order, and no more of them than a process can use") {
    const Scene scene;
    for (const size_t there : {0u, 1u, 3u, 64u, 100u}) {
        host.names.assign(there, "one");
        const NvmlGpus gpus;
        REQUIRE(gpus.view().size() == std::min<size_t>(there, 64));
        for (size_t i = 0; i < gpus.view().size(); i++)
            CHECK(gpus.view()[i].handle() == handle_of(i));
    }
    CHECK(host.initialised <= 1);  // once in a process
}

TEST_CASE("GPUs are of one model if all of them have one name, and there are any") {
    const Scene scene;
    host.names = {"one", "one", "one"};
    CHECK(nvml_one_model());
    host.names.back() = "other";
    CHECK_FALSE(nvml_one_model());
    host.names = {"one"};
    CHECK(nvml_one_model());
    host.named = false;
    CHECK_FALSE(nvml_one_model());
    host.names.clear();
    CHECK_FALSE(nvml_one_model());
}

TEST_CASE("no handler of the program's runs while NVML is asked, as it may leave by a jump") {
    const Scene scene;
    host.interrupted = true;
    host.compute.processes = {process(8, 80)};
    struct sigaction action {
    }, before;
    action.sa_handler = handle;
    sigaction(SIGUSR1, &action, &before);
    uint64_t bytes = 0;
    char name[96];
    SECTION("for a process") { CHECK(kGpu.used_by_process(8, &bytes) == Reading::ok); }
    SECTION("for a process in neither list") { CHECK(kGpu.used_by_process(9, &bytes) == Reading::absent); }
    SECTION("for a name") { CHECK(kGpu.name(name, sizeof name)); }
    SECTION("for a GPU by its UUID") { CHECK(NvmlGpu().open("GPU-made-up")); }
    SECTION("for all GPUs") {
        const NvmlGpus all;
        CHECK(all.view().size() == 1);
    }
    sigaction(SIGUSR1, &before, nullptr);
    CHECK(calls.handled >= 1);
    CHECK(calls.handled_inside == 0);
}
