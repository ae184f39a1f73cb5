// SPDX-License-Identifier: Apache-2.0
#include "fake/nvml/refused.h"

#include <algorithm>
#include <string_view>

#include "fake/nvml/answer.h"
#include "fake/nvml/links.h"
#include "fake/nvml/log.h"

namespace {

using cuslice::fake::GpuSpec;

// A function that NVIDIA's library, too, refuses on a GPU of this kind, by its nvml.h (of CUDA 13): by the remarks on
// ERROR_NOT_SUPPORTED and on the products that a function is for. It is refused without a word. If its name begins
// with nvmlDevice, it takes a device first.
struct Refused {
    std::string_view name;
    bool (*of)(const GpuSpec&);
};

bool always(const GpuSpec&) { return true; }
bool without_fan(const GpuSpec& gpu) { return !gpu.fan; }
bool without_mig(const GpuSpec& gpu) { return gpu.mig.empty(); }
bool without_link(const GpuSpec& gpu) { return cuslice::fake::link_count(gpu) == 0; }
template <int capability>
bool before(const GpuSpec& gpu) {
    return gpu.major * 10 + gpu.minor < capability;
}
constexpr auto before_turing = before<75>, before_ampere = before<80>, before_hopper = before<90>,
               before_blackwell = before<100>;

constexpr Refused kRefused[] = {
    // "if the platform is not windows"
    {"nvmlDeviceGetDriverModel", always},
    {"nvmlDeviceGetDriverModel_v2", always},
    {"nvmlDeviceSetDriverModel", always},
    // "if vGPU is not supported by the device", "not in vGPU mode", "not in vGPU host mode": the driver of a vGPU host
    // is another one, and this is none.
    {"nvmlDeviceGetActiveVgpus", always},
    {"nvmlDeviceGetCreatableVgpus", always},
    {"nvmlDeviceGetHostVgpuMode", always},
    {"nvmlDeviceGetPgpuMetadataString", always},
    {"nvmlDeviceGetSupportedVgpus", always},
    {"nvmlDeviceGetVgpuCapabilities", always},
    {"nvmlDeviceGetVgpuHeterogeneousMode", always},
    {"nvmlDeviceGetVgpuInstancesUtilizationInfo", always},
    {"nvmlDeviceGetVgpuMetadata", always},
    {"nvmlDeviceGetVgpuProcessUtilization", always},
    {"nvmlDeviceGetVgpuProcessesUtilizationInfo", always},
    {"nvmlDeviceGetVgpuSchedulerCapabilities", always},
    {"nvmlDeviceGetVgpuSchedulerLog", always},
    {"nvmlDeviceGetVgpuSchedulerLog_v2", always},
    {"nvmlDeviceGetVgpuSchedulerState", always},
    {"nvmlDeviceGetVgpuSchedulerState_v2", always},
    {"nvmlDeviceGetVgpuUtilization", always},
    {"nvmlDeviceSetVgpuCapabilities", always},
    {"nvmlDeviceSetVgpuSchedulerState", always},
    {"nvmlDeviceSetVgpuSchedulerState_v2", always},
    {"nvmlDeviceVgpuForceGspUnload", always},
    {"nvmlGetVgpuDriverCapabilities", always},
    // "if the device does not support Auto Boosted clocks": "on Pascal and newer hardware" they are controlled through
    // application clocks, and no profile is older.
    {"nvmlDeviceGetAutoBoostedClocksEnabled", always},
    // "For GK110 M-class and X-class Tesla products from the Kepler family"
    {"nvmlDeviceGetGpuOperationMode", always},
    {"nvmlDeviceSetGpuOperationMode", always},
    // "Only applicable to multi-GPU products", boards with a bridge between their GPUs
    {"nvmlDeviceGetBridgeChipInfo", always},
    // "if accounting mode is disabled", as it is until an administrator enables it
    {"nvmlDeviceGetAccountingPids", always},
    {"nvmlDeviceGetAccountingStats", always},
    {"nvmlDeviceGetAccountingStats_v2", always},
    // "For all discrete products with dedicated fans"
    {"nvmlDeviceGetCoolerInfo", without_fan},
    {"nvmlDeviceGetFanControlPolicy_v2", without_fan},
    {"nvmlDeviceGetFanSpeedRPM", without_fan},
    {"nvmlDeviceGetMinMaxFanSpeed", without_fan},
    {"nvmlDeviceGetTargetFanSpeed", without_fan},
    // "methods that NVML can perform on NVLINK enabled devices"
    {"nvmlDeviceFreezeNvLinkUtilizationCounter", without_link},
    {"nvmlDeviceGetNvLinkErrorCounter", without_link},
    {"nvmlDeviceGetNvLinkInfo", without_link},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", without_link},
    {"nvmlDeviceGetNvLinkRemotePciInfo", without_link},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", without_link},
    {"nvmlDeviceGetNvLinkUtilizationControl", without_link},
    {"nvmlDeviceGetNvLinkUtilizationCounter", without_link},
    {"nvmlDeviceResetNvLinkErrorCounters", without_link},
    {"nvmlDeviceResetNvLinkUtilizationCounter", without_link},
    {"nvmlDeviceSetNvLinkDeviceLowPowerThreshold", without_link},
    {"nvmlDeviceSetNvLinkUtilizationControl", without_link},
    // "If device doesn't have MIG mode enabled"
    {"nvmlDeviceCreateGpuInstance", without_mig},
    {"nvmlDeviceCreateGpuInstanceWithPlacement", without_mig},
    {"nvmlDeviceGetGpuInstanceById", without_mig},
    {"nvmlDeviceGetGpuInstanceRemainingCapacity", without_mig},
    {"nvmlDeviceGetGpuInstances", without_mig},
    // "For Turing or newer", and so on
    {"nvmlDeviceGetAddressingMode", before_turing},
    {"nvmlDeviceGetJpgUtilization", before_turing},
    {"nvmlDeviceGetOfaUtilization", before_turing},
    {"nvmlDeviceGetClkMonStatus", before_ampere},
    {"nvmlDeviceGetConfComputeGpuAttestationReport", before_ampere},
    {"nvmlDeviceGetConfComputeGpuCertificate", before_ampere},
    {"nvmlDeviceGetConfComputeMemSizeInfo", before_ampere},
    {"nvmlDeviceGetConfComputeProtectedMemoryUsage", before_ampere},
    {"nvmlDeviceGetGpuInstancePossiblePlacements_v2", before_ampere},
    {"nvmlDeviceGetGpuInstanceProfileInfo", before_ampere},
    {"nvmlDeviceGetGpuInstanceProfileInfoByIdV", before_ampere},
    {"nvmlDeviceGetGpuInstanceProfileInfoV", before_ampere},
    {"nvmlDeviceGetRemappedRows", before_ampere},
    {"nvmlDeviceGetRemappedRows_v2", before_ampere},
    {"nvmlDeviceGetRepairStatus", before_ampere},
    {"nvmlDeviceGetSramEccErrorStatus", before_ampere},
    {"nvmlDeviceGetGpuFabricInfo_v4", before_hopper},
    {"nvmlDeviceGetDramEncryptionMode", before_blackwell},
    {"nvmlDeviceGetHostname_v1", before_blackwell},
    {"nvmlDeviceGetNvlinkBwMode", before_blackwell},
    {"nvmlDeviceGetNvlinkSupportedBwModes", before_blackwell},
    {"nvmlDeviceGetPlatformInfo", before_blackwell},
    {"nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts", before_blackwell},
    {"nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", before_blackwell},
    {"nvmlDeviceWorkloadPowerProfileGetProfilesInfo", before_blackwell},
};

const Refused* find_refused(std::string_view name) {
    const Refused* found =
        std::find_if(std::begin(kRefused), std::end(kRefused), [&](const Refused& r) { return r.name == name; });
    return found == std::end(kRefused) ? nullptr : found;
}

int unsupported(const char* name, std::atomic<bool>& said) {
    if (!cuslice::fake::nvml_state().started()) return NVML_ERROR_UNINITIALIZED;
    if (!said.exchange(true)) cuslice::fake::nvml_say(std::string(name) + " is not supported");
    return NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

namespace cuslice::fake {

int nvml_refuse(const char* name, nvmlDevice_st* first, std::atomic<bool>& said) {
    const Refused* known = find_refused(name);
    if (known == nullptr) return unsupported(name, said);
    if (known->name.substr(0, 10) != "nvmlDevice")
        return answered(nvml_state().started() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED);
    return with_device(first, name, [&](const NvmlDevice& device) {
        return known->of(device.spec) ? NVML_ERROR_NOT_SUPPORTED : static_cast<nvmlReturn_t>(unsupported(name, said));
    });
}

}  // namespace cuslice::fake
