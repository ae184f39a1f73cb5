// SPDX-License-Identifier: Apache-2.0
#include "fake/nvml/refused.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "fake/nvml/answer.h"
#include "fake/nvml/links.h"
#include "fake/nvml/log.h"

namespace {

using cuslice::fake::GpuSpec;

bool always(const GpuSpec&) { return true; }
bool without_fan(const GpuSpec& gpu) { return !gpu.fan; }
bool without_mig(const GpuSpec& gpu) { return gpu.mig.empty(); }
bool without_link(const GpuSpec& gpu) { return cuslice::fake::link_count(gpu) == 0; }
template <int capability>
bool before(const GpuSpec& gpu) {
    return gpu.capability() < capability;
}

constexpr std::string_view kAlways[] = {
    // "if the platform is not windows"
    "nvmlDeviceGetDriverModel",
    "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceSetDriverModel",
    // "if vGPU is not supported by the device", "not in vGPU mode", "not in vGPU host mode": the driver of a vGPU host
    // is another one, and this is none.
    "nvmlDeviceGetActiveVgpus",
    "nvmlDeviceGetCreatableVgpus",
    "nvmlDeviceGetHostVgpuMode",
    "nvmlDeviceGetPgpuMetadataString",
    "nvmlDeviceGetSupportedVgpus",
    "nvmlDeviceGetVgpuCapabilities",
    "nvmlDeviceGetVgpuHeterogeneousMode",
    "nvmlDeviceGetVgpuInstancesUtilizationInfo",
    "nvmlDeviceGetVgpuMetadata",
    "nvmlDeviceGetVgpuProcessUtilization",
    "nvmlDeviceGetVgpuProcessesUtilizationInfo",
    "nvmlDeviceGetVgpuSchedulerCapabilities",
    "nvmlDeviceGetVgpuSchedulerLog",
    "nvmlDeviceGetVgpuSchedulerLog_v2",
    "nvmlDeviceGetVgpuSchedulerState",
    "nvmlDeviceGetVgpuSchedulerState_v2",
    "nvmlDeviceGetVgpuUtilization",
    "nvmlDeviceSetVgpuCapabilities",
    "nvmlDeviceSetVgpuSchedulerState",
    "nvmlDeviceSetVgpuSchedulerState_v2",
    "nvmlDeviceVgpuForceGspUnload",
    "nvmlGetVgpuDriverCapabilities",
    // "if the device does not support Auto Boosted clocks": "on Pascal and newer hardware" they are controlled through
    // application clocks, and no profile is older.
    "nvmlDeviceGetAutoBoostedClocksEnabled",
    // "For GK110 M-class and X-class Tesla products from the Kepler family"
    "nvmlDeviceGetGpuOperationMode",
    "nvmlDeviceSetGpuOperationMode",
    // "Only applicable to multi-GPU products", boards with a bridge between their GPUs
    "nvmlDeviceGetBridgeChipInfo",
    // "if accounting mode is disabled", as it is until an administrator enables it
    "nvmlDeviceGetAccountingPids",
    "nvmlDeviceGetAccountingStats",
    "nvmlDeviceGetAccountingStats_v2",
};
constexpr std::string_view kWithoutFan[] = {
    // "For all discrete products with dedicated fans"
    "nvmlDeviceGetCoolerInfo",     "nvmlDeviceGetFanControlPolicy_v2", "nvmlDeviceGetFanSpeedRPM",
    "nvmlDeviceGetMinMaxFanSpeed", "nvmlDeviceGetTargetFanSpeed",
};
constexpr std::string_view kWithoutLink[] = {
    // "methods that NVML can perform on NVLINK enabled devices"
    "nvmlDeviceFreezeNvLinkUtilizationCounter",
    "nvmlDeviceGetNvLinkErrorCounter",
    "nvmlDeviceGetNvLinkInfo",
    "nvmlDeviceGetNvLinkRemoteDeviceType",
    "nvmlDeviceGetNvLinkRemotePciInfo",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
    "nvmlDeviceGetNvLinkUtilizationControl",
    "nvmlDeviceGetNvLinkUtilizationCounter",
    "nvmlDeviceResetNvLinkErrorCounters",
    "nvmlDeviceResetNvLinkUtilizationCounter",
    "nvmlDeviceSetNvLinkDeviceLowPowerThreshold",
    "nvmlDeviceSetNvLinkUtilizationControl",
};
constexpr std::string_view kWithoutMig[] = {
    // "If device doesn't have MIG mode enabled"
    "nvmlDeviceCreateGpuInstance",  "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlDeviceGetGpuInstanceById", "nvmlDeviceGetGpuInstanceRemainingCapacity",
    "nvmlDeviceGetGpuInstances",
};
constexpr std::string_view kBeforeTuring[] = {
    // "For Turing or newer", and so on
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetJpgUtilization",
    "nvmlDeviceGetOfaUtilization",
};
constexpr std::string_view kBeforeAmpere[] = {
    "nvmlDeviceGetClkMonStatus",
    "nvmlDeviceGetConfComputeGpuAttestationReport",
    "nvmlDeviceGetConfComputeGpuCertificate",
    "nvmlDeviceGetConfComputeMemSizeInfo",
    "nvmlDeviceGetConfComputeProtectedMemoryUsage",
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
    "nvmlDeviceGetGpuInstanceProfileInfo",
    "nvmlDeviceGetGpuInstanceProfileInfoByIdV",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetRemappedRows_v2",
    "nvmlDeviceGetRepairStatus",
    "nvmlDeviceGetSramEccErrorStatus",
};
constexpr std::string_view kBeforeHopper[] = {
    "nvmlDeviceGetGpuFabricInfo_v4",
};
constexpr std::string_view kBeforeBlackwell[] = {
    "nvmlDeviceGetDramEncryptionMode",
    "nvmlDeviceGetHostname_v1",
    "nvmlDeviceGetNvlinkBwMode",
    "nvmlDeviceGetNvlinkSupportedBwModes",
    "nvmlDeviceGetPlatformInfo",
    "nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts",
    "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles",
    "nvmlDeviceWorkloadPowerProfileGetProfilesInfo",
};

// Functions that NVIDIA's library, too, refuses on a GPU of this kind, by its nvml.h (of CUDA 13): by the remarks on
// ERROR_NOT_SUPPORTED and on the products that a function is for. They are refused without a word. If a name begins
// with nvmlDevice, the function takes a device first.
struct Refused {
    bool (*of)(const GpuSpec&);
    std::span<const std::string_view> names;
};
constexpr Refused kRefused[] = {
    {always, kAlways},           {without_fan, kWithoutFan},      {without_link, kWithoutLink},
    {without_mig, kWithoutMig},  {before<75>, kBeforeTuring},     {before<80>, kBeforeAmpere},
    {before<90>, kBeforeHopper}, {before<100>, kBeforeBlackwell},
};

const Refused* find_refused(std::string_view name) {
    const Refused* found = std::find_if(std::begin(kRefused), std::end(kRefused), [&](const Refused& r) {
        return std::find(r.names.begin(), r.names.end(), name) != r.names.end();
    });
    return found == std::end(kRefused) ? nullptr : found;
}

int unsupported(const char* name, std::atomic<bool>& said) {
    if (!cuslice::fake::nvml_state().started())
        return NVML_ERROR_UNINITIALIZED;
    if (!said.exchange(true))
        cuslice::fake::nvml_say(std::string(name) + " is not supported");
    return NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

namespace cuslice::fake {

int nvml_refuse(const char* name, nvmlDevice_st* first, std::atomic<bool>& said) {
    const Refused* known = find_refused(name);
    if (known == nullptr)
        return unsupported(name, said);
    if (std::string_view(name).substr(0, 10) != "nvmlDevice")
        return answered(nvml_state().started() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED);
    return with_device(first, name, [&](const NvmlDevice& device) {
        return known->of(device.spec) ? NVML_ERROR_NOT_SUPPORTED : static_cast<nvmlReturn_t>(unsupported(name, said));
    });
}

}  // namespace cuslice::fake
