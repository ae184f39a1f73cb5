// SPDX-License-Identifier: Apache-2.0
// Functions that NVIDIA's library also refuses on a GPU of this kind are refused without a word. One line
// names any other function that is missing.
#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "virtual_gpu/driver/nvml.h"

using namespace cuslice::nvml;
using namespace fake_test;

namespace {

using Words = std::vector<std::string>;

Environment on(const std::string& gpu) { return {{"CUSLICE_FAKE", gpu}}; }

nvmlDevice_t device_of(const Report& report) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
    EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    return device;
}

/// A function by its name, as programs find NVML's.
template <typename... Arguments>
nvmlReturn_t ask(const char* name, nvmlDevice_t device, Arguments... arguments) {
    return reinterpret_cast<nvmlReturn_t (*)(nvmlDevice_t, Arguments...)>(dlsym(RTLD_DEFAULT, name))(device,
                                                                                                     arguments...);
}

/// Asks each twice, with room for an answer that none of them writes to, and returns what was said of it.
std::string said_of(const std::string& gpu, const Words& names) {
    std::string said;
    INFO(gpu);
    CHECK(in_child(
              on(gpu),
              [&](const Report& report) {
                  const nvmlDevice_t device = device_of(report);
                  for (const std::string& name : names) {
                      unsigned char answers[3][4096];
                      std::memset(answers, 7, sizeof answers);
                      for (int i = 0; i < 2; i++)
                          EXPECT_EQUAL(
                              name + " " +
                                  std::to_string(ask(name.c_str(), device, answers[0], answers[1], answers[2])),
                              name + " " + std::to_string(NVML_ERROR_NOT_SUPPORTED));
                      for (const auto& answer : answers)
                          for (const unsigned char byte : answer)
                              EXPECT_EQUAL(int{byte}, 7);
                  }
              },
              &said) == "");
    return said;
}

const Words everywhere{
    "nvmlDeviceGetDriverModel",      "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceGetSupportedVgpus",   "nvmlDeviceGetCreatableVgpus",
    "nvmlDeviceGetActiveVgpus",      "nvmlDeviceGetHostVgpuMode",
    "nvmlDeviceGetVgpuUtilization",  "nvmlDeviceGetVgpuProcessUtilization",
    "nvmlDeviceGetVgpuMetadata",     "nvmlDeviceGetVgpuSchedulerState",
    "nvmlGetVgpuDriverCapabilities", "nvmlDeviceGetAutoBoostedClocksEnabled",
    "nvmlDeviceGetGpuOperationMode", "nvmlDeviceGetBridgeChipInfo",
    "nvmlDeviceGetAccountingPids",   "nvmlDeviceGetAccountingStats",
};

std::string lines_for(const Words& names) {
    std::string lines;
    for (const std::string& name : names)
        lines += "cuslice fake NVML: " + name + " is not supported\n";
    return lines;
}

}  // namespace

TEST_CASE("what no Linux has is refused without a word, and anything else that is missing by name") {
    for (const char* gpu : {"v100-16g", "t4", "a100-40g", "l4", "h200", "b200", "rtx4090"})
        CHECK(said_of(gpu, everywhere) == "");
    CHECK(said_of("t4", {"nvmlDeviceGetViolationStatus"}) == lines_for({"nvmlDeviceGetViolationStatus"}));
}

TEST_CASE("what only others of NVIDIA's GPUs have is refused without a word, and by name where it is missing") {
    const Folder folder;
    const std::string divided = folder.path() + "/gpus.toml";
    std::ofstream(divided) << "[[gpu]]\nprofile = \"h200\"\nmig = [\"1g.18gb\"]\n";
    struct Kind {
        Words names;
        const char *without, *with;
    };
    for (const Kind& kind : {
             Kind{{"nvmlDeviceGetFanSpeedRPM", "nvmlDeviceGetMinMaxFanSpeed", "nvmlDeviceGetTargetFanSpeed"},
                  "h200",
                  "rtx4090"},
             Kind{{"nvmlDeviceGetGpuInstances", "nvmlDeviceGetGpuInstanceRemainingCapacity"}, "h200", divided.c_str()},
             Kind{{"nvmlDeviceGetOfaUtilization", "nvmlDeviceGetJpgUtilization"}, "v100-16g", "t4"},
             Kind{{"nvmlDeviceGetRemappedRows", "nvmlDeviceGetConfComputeMemSizeInfo"}, "t4", "a100-80g"},
             Kind{{"nvmlDeviceGetGpuFabricInfo_v4"}, "a100-80g", "h100"},
             Kind{{"nvmlDeviceGetNvLinkErrorCounter", "nvmlDeviceGetNvLinkRemotePciInfo_v2"}, "l4", "h100"},
             Kind{{"nvmlDeviceGetPlatformInfo", "nvmlDeviceGetDramEncryptionMode"}, "h200", "b200"},
         }) {
        CHECK(said_of(kind.without, kind.names) == "");
        CHECK(said_of(kind.with, kind.names) == lines_for(kind.names));
    }
}

TEST_CASE("a handle that is none is told so before anything else") {
    std::string said;
    CHECK(in_child(
              on("t4"),
              [](const Report& report) {
                  device_of(report);
                  int nothing[4] = {};
                  const auto ask =
                      reinterpret_cast<int (*)(void*, int*, int*)>(dlsym(RTLD_DEFAULT, "nvmlDeviceGetDriverModel_v2"));
                  EXPECT_EQUAL(ask(nothing, nothing, nothing), int{NVML_ERROR_INVALID_ARGUMENT});
              },
              &said) == "");
    CHECK(said == "");
}

TEST_CASE("nobody encodes, captures frames or keeps accounts, and no virtual machine has the GPU") {
    const std::string gpu = GENERATE("t4", "l4", "h200");
    const bool encodes = gpu != "h200", av1 = gpu == "l4";
    std::string said;
    CAPTURE(gpu);
    CHECK(in_child(
              on(gpu),
              [&](const Report& report) {
                  const nvmlDevice_t device = device_of(report);
                  unsigned count = 7, fps = 7, latency = 7;
                  EXPECT_EQUAL(ask("nvmlDeviceGetEncoderStats", device, &count, &fps, &latency), NVML_SUCCESS);
                  EXPECT_EQUAL(count + fps + latency, 0U);
                  EXPECT_EQUAL(
                      ask("nvmlDeviceGetEncoderStats", device, &count, static_cast<unsigned*>(nullptr), &latency),
                      NVML_ERROR_INVALID_ARGUMENT);
                  struct {
                      unsigned sessions, fps, latency;
                  } stats{7, 7, 7};
                  EXPECT_EQUAL(ask("nvmlDeviceGetFBCStats", device, &stats), NVML_SUCCESS);
                  EXPECT_EQUAL(stats.sessions + stats.fps + stats.latency, 0U);
                  EXPECT_EQUAL(ask("nvmlDeviceGetFBCSessions", device, &(count = 7), nullptr), NVML_SUCCESS);
                  EXPECT_EQUAL(count, 0U);
                  EXPECT_EQUAL(ask("nvmlDeviceGetEncoderSessions", device, &(count = 7), nullptr),
                               encodes ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(count, encodes ? 0U : 7U);
                  for (unsigned type = 0; type < 3; type++) {
                      unsigned capacity = 7;
                      const bool can = type == 2 ? av1 : encodes;
                      EXPECT_EQUAL(ask("nvmlDeviceGetEncoderCapacity", device, type, &capacity),
                                   can ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
                      EXPECT_EQUAL(capacity, can ? 100U : 7U);
                  }
                  EXPECT_EQUAL(ask("nvmlDeviceGetEncoderCapacity", device, 3, &count), NVML_ERROR_INVALID_ARGUMENT);
                  EXPECT_EQUAL(ask("nvmlDeviceGetVirtualizationMode", device, &(count = 7)), NVML_SUCCESS);
                  EXPECT_EQUAL(count, 0U);
                  nvmlEnableState_t accounting = NVML_FEATURE_ENABLED;
                  EXPECT_EQUAL(ask("nvmlDeviceGetAccountingMode", device, &accounting), NVML_SUCCESS);
                  EXPECT(accounting == NVML_FEATURE_DISABLED);
              },
              &said) == "");
    CHECK(said == "");
}
