// SPDX-License-Identifier: Apache-2.0
// NVLink, the fabric behind it, fields by number and confidential computing: what libraries for machine learning ask at
// their start. A GPU without any of it says so without a word.
#include <cstring>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "virtual_gpu/driver/nvml.h"

using namespace cuslice::nvml;
using namespace fake_test;

namespace {

nvmlDevice_t first(const Report& report) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQUAL(nvmlInit_v2(), NVML_SUCCESS);
    EXPECT_EQUAL(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    return device;
}

/// Runs `body` on the GPUs; says what was printed.
template <typename Body>
std::string on(const std::string& gpus, Body&& body) {
    std::string said;
    INFO(gpus);
    CHECK(in_child({{"CUSLICE_FAKE", gpus}}, body, &said) == "");
    return said;
}

nvmlFieldValue_t field(unsigned id, unsigned scope = 0) {
    nvmlFieldValue_t value{};
    value.fieldId = id;
    value.scopeId = scope;
    value.nvmlReturn = NVML_ERROR_UNKNOWN;
    return value;
}

template <typename T>
T with_version(unsigned version) {
    T value;
    std::memset(static_cast<void*>(&value), 7, sizeof value);
    value.version = version;
    return value;
}

}  // namespace

TEST_CASE("a GPU without NVLink refuses to speak of its links without a word") {
    const std::string gpu = GENERATE("t4", "l4", "rtx4090", "gb10", "laptop-2g");
    CHECK(on(gpu, [](const Report& report) {
              const nvmlDevice_t device = first(report);
              for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
                  nvmlEnableState_t active = NVML_FEATURE_ENABLED;
                  unsigned number = 7;
                  nvmlPciInfo_t pci{};
                  nvmlIntNvLinkDeviceType_t type{};
                  unsigned long long errors = 0;
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkState(device, link, &active), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkVersion(device, link, &number), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkCapability(device, link, NVML_NVLINK_CAP_P2P_SUPPORTED, &number),
                               NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkRemotePciInfo(device, link, &pci), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &type), NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkErrorCounter(device, link, NVML_NVLINK_ERROR_DL_REPLAY, &errors),
                               NVML_ERROR_NOT_SUPPORTED);
                  EXPECT(active == NVML_FEATURE_ENABLED && number == 7);
              }
          }) == "");
}

TEST_CASE("links are active where another GPU is linked, and are as many as the GPU has") {
    struct Machine {
        const char* gpus;
        unsigned links;
        nvmlNvlinkVersion_t version;
        bool active;
    };
    const Machine machine = GENERATE(Machine{"2xh200", 18, NVML_NVLINK_VERSION_4_0, true},
                                     Machine{"a100-40g,a100-80g", 12, NVML_NVLINK_VERSION_3_0, true},
                                     Machine{"8xv100-16g", 6, NVML_NVLINK_VERSION_2_0, true},
                                     Machine{"2xb200", 18, NVML_NVLINK_VERSION_5_0, true},
                                     Machine{"h200", 18, NVML_NVLINK_VERSION_4_0, false},
                                     Machine{"h200,v100-16g,t4", 18, NVML_NVLINK_VERSION_4_0, false});
    CHECK(on(machine.gpus, [&](const Report& report) {
              const nvmlDevice_t device = first(report);
              const nvmlEnableState_t expected = machine.active ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
              for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS + 2; link++) {
                  nvmlEnableState_t active{};
                  unsigned version = 0, valid = 7, peers = 7, host = 7;
                  const nvmlReturn_t good = link < machine.links ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkState(device, link, &active), good);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkVersion(device, link, &version), good);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkCapability(device, link, NVML_NVLINK_CAP_VALID, &valid), good);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkCapability(device, link, NVML_NVLINK_CAP_P2P_SUPPORTED, &peers),
                               good);
                  EXPECT_EQUAL(nvmlDeviceGetNvLinkCapability(device, link, NVML_NVLINK_CAP_SYSMEM_ACCESS, &host), good);
                  if (good != NVML_SUCCESS)
                      continue;
                  EXPECT(active == expected);
                  EXPECT_EQUAL(version, unsigned{machine.version});
                  EXPECT_EQUAL(valid, 1U);
                  EXPECT_EQUAL(peers, machine.active ? 1U : 0U);
                  EXPECT_EQUAL(host, 0U);
              }
              unsigned number = 0;
              EXPECT_EQUAL(nvmlDeviceGetNvLinkCapability(device, 0, NVML_NVLINK_CAP_COUNT, &number),
                           NVML_ERROR_INVALID_ARGUMENT);
          }) == "");
}

TEST_CASE("what is at the other end of a link no profile says, which is told by name") {
    CHECK(on("2xh200", [](const Report& report) {
              nvmlPciInfo_t pci{};
              EXPECT_EQUAL(nvmlDeviceGetNvLinkRemotePciInfo_v2(first(report), 0, &pci), NVML_ERROR_NOT_SUPPORTED);
          }) == "cuslice fake NVML: nvmlDeviceGetNvLinkRemotePciInfo_v2 is not supported\n");
}

TEST_CASE("a GPU's fabric is of Hopper's and later GPUs with NVLink, and nobody has registered them there") {
    const std::string gpu = GENERATE("t4", "a100-80g", "rtx4090", "gb10", "h200", "b200");
    const bool has = gpu == "h200" || gpu == "b200";
    CHECK(on(gpu, [&](const Report& report) {
              const nvmlDevice_t device = first(report);
              const nvmlReturn_t expected = has ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
              nvmlGpuFabricInfo_t oldest;
              std::memset(&oldest, 7, sizeof oldest);
              EXPECT_EQUAL(nvmlDeviceGetGpuFabricInfo(device, &oldest), expected);
              EXPECT_EQUAL(int{oldest.state}, has ? NVML_GPU_FABRIC_STATE_NOT_SUPPORTED : 7);
              for (const unsigned version :
                   {struct_version<nvmlGpuFabricInfo_v2_t>(2), struct_version<nvmlGpuFabricInfo_v3_t>(3)}) {
                  auto info = with_version<nvmlGpuFabricInfo_v3_t>(version);
                  EXPECT_EQUAL(nvmlDeviceGetGpuFabricInfoV(device, &info), expected);
                  EXPECT_EQUAL(info.version, version);
                  if (!has) {
                      EXPECT_EQUAL(int{info.state}, 7);
                      continue;
                  }
                  EXPECT_EQUAL(int{info.state}, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
                  for (const unsigned char byte : info.clusterUuid)
                      EXPECT_EQUAL(int{byte}, 0);
                  EXPECT_EQUAL(info.cliqueId + info.healthMask, 0U);
                  // The older structure ends before the summary.
                  EXPECT_EQUAL(int{info.healthSummary},
                               version >> 24 == 2 ? 7 : NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED);
              }
              for (const unsigned version :
                   {0U, 2U, struct_version<nvmlGpuFabricInfo_v2_t>(3), struct_version<nvmlGpuFabricInfo_v3_t>(4)}) {
                  auto info = with_version<nvmlGpuFabricInfo_v3_t>(version);
                  EXPECT_EQUAL(nvmlDeviceGetGpuFabricInfoV(device, &info),
                               has ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH : NVML_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(int{info.state}, 7);
              }
          }) == "");
}

TEST_CASE("each field has an error of its own, and a field that the GPU can't have is refused without a word") {
    CHECK(on("t4", [](const Report& report) {
              const nvmlDevice_t device = first(report);
              nvmlFieldValue_t values[] = {field(NVML_FI_DEV_NVLINK_LINK_COUNT), field(NVML_FI_DEV_POWER_INSTANT),
                                           field(NVML_FI_DEV_NVLINK_GET_STATE),  field(NVML_FI_DEV_ECC_CURRENT),
                                           field(NVML_FI_DEV_C2C_LINK_COUNT),    field(0),
                                           field(NVML_FI_DEV_ECC_DBE_AGG_TOTAL), field(NVML_FI_MAX)};
              EXPECT_EQUAL(nvmlDeviceGetFieldValues(device, 8, values), NVML_SUCCESS);
              const nvmlReturn_t no = NVML_ERROR_NOT_SUPPORTED, bad = NVML_ERROR_INVALID_ARGUMENT;
              const nvmlReturn_t expected[] = {no, NVML_SUCCESS, no, NVML_SUCCESS, no, bad, NVML_SUCCESS, bad};
              for (int i = 0; i < 8; i++)
                  EXPECT_EQUAL(values[i].nvmlReturn, expected[i]);
              unsigned power = 0;
              EXPECT_EQUAL(nvmlDeviceGetPowerUsage(device, &power), NVML_SUCCESS);
              EXPECT_EQUAL(values[1].value.uiVal, power);
              EXPECT(values[1].valueType == NVML_VALUE_TYPE_UNSIGNED_INT && values[1].timestamp > 0);
              EXPECT_EQUAL(values[3].value.uiVal, unsigned{NVML_FEATURE_ENABLED});
              EXPECT(values[6].valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG && values[6].value.ullVal == 0);
          }) == "");
    CHECK(on("2xh200", [](const Report& report) {
              nvmlFieldValue_t values[] = {
                  field(NVML_FI_DEV_NVLINK_LINK_COUNT), field(NVML_FI_DEV_NVLINK_GET_STATE, 17),
                  field(NVML_FI_DEV_NVLINK_GET_STATE, 18), field(NVML_FI_DEV_NVLINK_GET_VERSION, 3)};
              EXPECT_EQUAL(nvmlDeviceGetFieldValues(first(report), 4, values), NVML_SUCCESS);
              EXPECT_EQUAL(values[0].value.uiVal, 18U);
              EXPECT_EQUAL(values[1].value.uiVal, unsigned{NVML_NVLINK_STATE_ACTIVE});
              EXPECT_EQUAL(values[2].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
              EXPECT_EQUAL(values[3].value.uiVal, unsigned{NVML_NVLINK_VERSION_4_0});
          }) == "");
    CHECK(on("rtx3090", [](const Report& report) {
              nvmlFieldValue_t values[] = {field(NVML_FI_DEV_ECC_CURRENT), field(NVML_FI_DEV_MEMORY_TEMP),
                                           field(NVML_FI_DEV_MEMORY_TEMP)};
              EXPECT_EQUAL(nvmlDeviceGetFieldValues(first(report), 3, values), NVML_SUCCESS);
              for (const nvmlFieldValue_t& value : values)
                  EXPECT_EQUAL(value.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
          }) == "cuslice fake NVML: nvmlDeviceGetFieldValues: field 82 is not supported\n");
}

TEST_CASE("confidential computing is off, and is no question on an older GPU") {
    const std::string gpus = GENERATE("t4", "2xt4", "a100-80g", "t4,l4", "h200", "b200");
    const bool hopper = gpus == "h200" || gpus == "b200", ampere = hopper || gpus == "a100-80g" || gpus == "t4,l4";
    CHECK(
        on(gpus, [&](const Report& report) {
            nvmlConfComputeSystemState_t state{7, 7, 7};
            nvmlConfComputeSystemCaps_t capabilities{7, 7};
            unsigned ready = 7;
            auto settings =
                with_version<nvmlSystemConfComputeSettings_v1_t>(struct_version<nvmlSystemConfComputeSettings_v1_t>(1));
            auto wrong =
                with_version<nvmlSystemConfComputeSettings_v1_t>(struct_version<nvmlSystemConfComputeSettings_v1_t>(2));
            EXPECT_EQUAL(nvmlSystemGetConfComputeState(&state), NVML_ERROR_UNINITIALIZED);
            first(report);
            EXPECT_EQUAL(nvmlSystemGetConfComputeState(&state), ampere ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
            EXPECT_EQUAL(state.environment + state.ccFeature + state.devToolsMode, ampere ? 0U : 21U);
            EXPECT_EQUAL(nvmlSystemGetConfComputeCapabilities(&capabilities),
                         ampere ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
            EXPECT_EQUAL(capabilities.cpuCaps + capabilities.gpusCaps, ampere ? 0U : 14U);
            EXPECT_EQUAL(nvmlSystemGetConfComputeGpusReadyState(&ready), NVML_ERROR_NOT_SUPPORTED);
            EXPECT_EQUAL(nvmlSystemGetConfComputeSettings(&settings), hopper ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
            EXPECT_EQUAL(settings.ccFeature == 0 && settings.multiGpuMode == 0, hopper);
            EXPECT_EQUAL(nvmlSystemGetConfComputeSettings(&wrong),
                         hopper ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH : NVML_ERROR_NOT_SUPPORTED);
            EXPECT_EQUAL(nvmlSystemGetConfComputeState(nullptr), NVML_ERROR_INVALID_ARGUMENT);
            EXPECT_EQUAL(nvmlSystemGetConfComputeSettings(nullptr), NVML_ERROR_INVALID_ARGUMENT);
            EXPECT_EQUAL(nvmlSystemGetConfComputeGpusReadyState(nullptr), NVML_ERROR_INVALID_ARGUMENT);
        }) == "");
}

TEST_CASE("links, fabric and fields want a handle, a place, and NVML initialised") {
    CHECK(on("2xh200", [](const Report& report) {
              nvmlEnableState_t active{};
              unsigned number = 0;
              auto info = with_version<nvmlGpuFabricInfo_v3_t>(struct_version<nvmlGpuFabricInfo_v3_t>(3));
              nvmlFieldValue_t value = field(NVML_FI_DEV_POWER_INSTANT);
              const auto all = [&](nvmlDevice_t device, bool place) {
                  return std::vector<nvmlReturn_t>{
                      nvmlDeviceGetNvLinkState(device, 0, place ? &active : nullptr),
                      nvmlDeviceGetNvLinkVersion(device, 0, place ? &number : nullptr),
                      nvmlDeviceGetNvLinkCapability(device, 0, NVML_NVLINK_CAP_VALID, place ? &number : nullptr),
                      nvmlDeviceGetGpuFabricInfoV(device, place ? &info : nullptr),
                      nvmlDeviceGetFieldValues(device, 1, place ? &value : nullptr)};
              };
              for (const nvmlReturn_t code : all(nullptr, true))
                  EXPECT_EQUAL(code, NVML_ERROR_UNINITIALIZED);
              const nvmlDevice_t device = first(report);
              for (const nvmlReturn_t code : all(nullptr, true))
                  EXPECT_EQUAL(code, NVML_ERROR_INVALID_ARGUMENT);
              for (const nvmlReturn_t code : all(device, false))
                  EXPECT_EQUAL(code, NVML_ERROR_INVALID_ARGUMENT);
              for (const nvmlReturn_t code : all(device, true))
                  EXPECT_EQUAL(code, NVML_SUCCESS);
              for (const int count : {0, -1})
                  EXPECT_EQUAL(nvmlDeviceGetFieldValues(device, count, &value), NVML_ERROR_INVALID_ARGUMENT);
          }) == "");
}
