// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's own header of its management library, with every older form of a function under its own name (nvmlInit
// beside nvmlInit_v2), and what it says nothing of. Sizes are bytes, clocks MHz, power milliwatts, temperatures °C,
// utilization percent.
//
// The process lists: *count is the array's length, then how many there are; too short is NVML_ERROR_INSUFFICIENT_SIZE,
// unless *count was 0 and there is none.

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

namespace cuslice::nvml {

// The structure that nvmlDeviceGetPciInfo and _v2 fill; the header declares them with that of _v3.
struct PciInfoV2 {
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned domain, bus, device;
    unsigned pciDeviceId;
    unsigned pciSubSystemId;
    unsigned reserved[4];
};

constexpr unsigned kInitFlagForceInit = 4;
// nvmlProcessDetailList_v1_t::mode.
constexpr unsigned kProcessModeCompute = 0;
// "Not available" in a process's usedGpuMemory: NVML_VALUE_NOT_AVAILABLE, which is an int.
constexpr unsigned long long kValueNotAvailable = ~0ULL;
// gpuInstanceId and computeInstanceId of a process on a GPU without MIG.
constexpr unsigned kNoInstance = ~0U;

// A structure that carries its version says so in its first member: the size and the version's number.
template <typename T>
constexpr unsigned struct_version(unsigned number) {
    return static_cast<unsigned>(sizeof(T)) | number << 24;
}

static_assert(sizeof(nvmlPciInfo_t) == 68 && sizeof(PciInfoV2) == 52 && sizeof(nvmlPciInfoExt_v1_t) == 64);
static_assert(sizeof(nvmlMemory_t) == 24 && sizeof(nvmlMemory_v2_t) == 40 &&
              struct_version<nvmlMemory_v2_t>(2) == 0x02000028);
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_t) == 24 &&
              sizeof(nvmlProcessDetail_v1_t) == 32);
static_assert(sizeof(nvmlEventData_t) == 32);
static_assert(struct_version<nvmlUUID_v1_t>(1) == 0x1000034 &&
              struct_version<nvmlProcessDetailList_v1_t>(1) == 0x1000018);

}  // namespace cuslice::nvml
