// SPDX-License-Identifier: Apache-2.0
// Uses of a device besides computing. It has none: nobody encodes on it, captures its frames, or keeps accounts of it,
// and it is no virtual machine's.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// By NVIDIA's table of what can be encoded where ("Video Encode and Decode GPU Support Matrix"): the large chips for
/// data centres of Ampere, Hopper and Blackwell have no encoder, and AV1 came with Ada.
bool has_encoder(const GpuSpec& gpu, nvmlEncoderType_t type) {
    const int capability = gpu.capability();
    if (capability == 80 || capability == 90 || capability == 100)
        return false;
    return type == NVML_ENCODER_QUERY_AV1 ? capability >= 89 : true;
}

/// No sessions. As documented, a size of 0 asks how many there are.
nvmlReturn_t no_sessions(unsigned* count) { return give(count, 0); }

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetEncoderCapacity, out, handle, type, out) {
    constexpr unsigned kAll = 100;
    if (static_cast<unsigned>(type) > NVML_ENCODER_QUERY_AV1)
        return NVML_ERROR_INVALID_ARGUMENT;
    return has_encoder(device.spec, type) ? give(out, kAll) : NVML_ERROR_NOT_SUPPORTED;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetEncoderStats, count, handle, count, fps, latency) {
    if (fps == nullptr || latency == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    *fps = *latency = 0;
    return no_sessions(count);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetEncoderSessions, count, handle, count, sessions) {
    return has_encoder(device.spec, NVML_ENCODER_QUERY_H264) ? no_sessions(count) : NVML_ERROR_NOT_SUPPORTED;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetFBCStats, out, handle, out) {
    *out = {};
    return NVML_SUCCESS;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetFBCSessions, count, handle, count, sessions) { return no_sessions(count); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetVirtualizationMode, out, handle, out) {
    constexpr unsigned kNone = 0;
    return give(out, kNone);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetAccountingMode, out, handle, out) { return give(out, NVML_FEATURE_DISABLED); }
