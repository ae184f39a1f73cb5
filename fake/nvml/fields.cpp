// SPDX-License-Identifier: Apache-2.0
// Values of a device by the number of a field. Each has an error of its own.

#include <array>
#include <atomic>
#include <chrono>

#include "fake/nvml/answer.h"
#include "fake/nvml/links.h"
#include "fake/nvml/log.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

struct Range {
    unsigned first, last;
};
constexpr Range kOfNvlink[] = {
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_TOTAL},
    {NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, NVML_FI_DEV_NVLINK_LINK_COUNT},
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX},
    {NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD},
    {NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_SUPPORTED},
    {NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15}};
constexpr Range kOfEcc[] = {{NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_ECC_DBE_AGG_CBU}};
// The link between a GPU and its processor, which boards in a PCIe slot or on an HGX board lack.
constexpr Range kOfC2c[] = {{NVML_FI_DEV_C2C_LINK_COUNT, NVML_FI_DEV_C2C_LINK_GET_MAX_BW},
                            {NVML_FI_DEV_C2C_LINK_ERROR_INTR, NVML_FI_DEV_C2C_LINK_POWER_STATE}};

template <size_t size>
bool in(const Range (&ranges)[size], unsigned field) {
    for (const Range& range : ranges) {
        if (field >= range.first && field <= range.last)
            return true;
    }
    return false;
}

/// True if NVIDIA's library refuses the field too, on a GPU of this kind.
bool lacks(const GpuSpec& gpu, unsigned field) {
    return (in(kOfNvlink, field) && link_count(gpu) == 0) || (in(kOfEcc, field) && !gpu.ecc) ||
           (in(kOfC2c, field) && !gpu.integrated);
}

/// A field that a GPU of this kind has, and this one hasn't: said once of each.
nvmlReturn_t unknown(unsigned field) {
    static constinit std::array<std::atomic<bool>, NVML_FI_MAX> said{};
    if (!said[field].exchange(true))
        nvml_say("nvmlDeviceGetFieldValues: field " + std::to_string(field) + " is not supported");
    return NVML_ERROR_NOT_SUPPORTED;
}

/// Asks the function that answers the same with one number.
template <typename F, typename... Arguments>
nvmlReturn_t ask(nvmlFieldValue_t& value, F* function, nvmlDevice_t handle, Arguments... arguments) {
    unsigned number = 0;
    const nvmlReturn_t result = function(handle, arguments..., &number);
    value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    value.value.uiVal = number;
    return result;
}

nvmlReturn_t ecc_mode(nvmlFieldValue_t& value, nvmlDevice_t handle) {
    nvmlEnableState_t current{}, pending{};
    const nvmlReturn_t result = nvmlDeviceGetEccMode(handle, &current, &pending);
    value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    value.value.uiVal = value.fieldId == NVML_FI_DEV_ECC_CURRENT ? current : pending;
    return result;
}

nvmlReturn_t ecc_total(nvmlFieldValue_t& value, nvmlDevice_t handle) {
    const unsigned place = value.fieldId - NVML_FI_DEV_ECC_SBE_VOL_TOTAL;
    value.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    return nvmlDeviceGetTotalEccErrors(
        handle, place % 2 == 0 ? NVML_MEMORY_ERROR_TYPE_CORRECTED : NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        place < 2 ? NVML_VOLATILE_ECC : NVML_AGGREGATE_ECC, &value.value.ullVal);
}

nvmlReturn_t link_state(nvmlFieldValue_t& value, nvmlDevice_t handle) {
    nvmlEnableState_t active{};
    const nvmlReturn_t result = nvmlDeviceGetNvLinkState(handle, value.scopeId, &active);
    value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    value.value.uiVal = active == NVML_FEATURE_ENABLED ? NVML_NVLINK_STATE_ACTIVE : NVML_NVLINK_STATE_INACTIVE;
    return result;
}

nvmlReturn_t fill(nvmlFieldValue_t& value, nvmlDevice_t handle, const GpuSpec& gpu) {
    if (value.fieldId == 0 || value.fieldId >= NVML_FI_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (lacks(gpu, value.fieldId))
        return NVML_ERROR_NOT_SUPPORTED;
    switch (value.fieldId) {
        case NVML_FI_DEV_ECC_CURRENT:
        case NVML_FI_DEV_ECC_PENDING:
            return ecc_mode(value, handle);
        case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
        case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
        case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
        case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
            return ecc_total(value, handle);
        case NVML_FI_DEV_NVLINK_LINK_COUNT:
            value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
            return give(&value.value.uiVal, link_count(gpu));
        case NVML_FI_DEV_NVLINK_GET_STATE:
            return link_state(value, handle);
        case NVML_FI_DEV_NVLINK_GET_VERSION:
            return ask(value, nvmlDeviceGetNvLinkVersion, handle, value.scopeId);
        case NVML_FI_DEV_POWER_AVERAGE:
        case NVML_FI_DEV_POWER_INSTANT:
            return ask(value, nvmlDeviceGetPowerUsage, handle);
        case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
            return ask(value, nvmlDeviceGetPowerManagementDefaultLimit, handle);
        case NVML_FI_DEV_POWER_CURRENT_LIMIT:
            return ask(value, nvmlDeviceGetEnforcedPowerLimit, handle);
        case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
            return ask(value, nvmlDeviceGetPowerManagementLimit, handle);
        default:
            return unknown(value.fieldId);
    }
}

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetFieldValues, values, handle, count, values) {
    if (count <= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t& value = values[i];
        value.timestamp = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
        value.latencyUsec = 0;
        value.nvmlReturn = fill(value, handle, device.spec);
    }
    return NVML_SUCCESS;
}
