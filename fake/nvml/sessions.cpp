// What others do with a device besides computing: nobody encodes, captures its frames, or keeps accounts of it, and it
// is no virtual machine's.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

enum Encoder : unsigned { H264 = 0, HEVC = 1, AV1 = 2 };

/// By NVIDIA's table of what can be encoded where ("Video Encode and Decode GPU Support Matrix"): the large chips for
/// data centres of Ampere, Hopper and Blackwell have no encoder, and AV1 came with Ada.
bool has_encoder(const GpuSpec& gpu, unsigned type) {
    const int capability = gpu.major * 10 + gpu.minor;
    if (capability == 80 || capability == 90 || capability == 100) return false;
    return type == AV1 ? capability >= 89 : true;
}

/// No sessions. As documented, a size of 0 asks how many there are.
Return no_sessions(unsigned* count) { return give(count, 0); }

}  // namespace

CUSLICE_NVML(nvmlDeviceGetEncoderCapacity);
Return nvmlDeviceGetEncoderCapacity(Device handle, unsigned type, unsigned* out) {
    constexpr unsigned all = 100;
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (type > AV1) return ERROR_INVALID_ARGUMENT;
        return has_encoder(device.spec, type) ? give(out, all) : ERROR_NOT_SUPPORTED;
    });
}

CUSLICE_NVML(nvmlDeviceGetEncoderStats);
Return nvmlDeviceGetEncoderStats(Device handle, unsigned* count, unsigned* fps, unsigned* latency) {
    return with_device(handle, count, [&](const NvmlDevice&) {
        if (fps == nullptr || latency == nullptr) return ERROR_INVALID_ARGUMENT;
        *fps = *latency = 0;
        return no_sessions(count);
    });
}

CUSLICE_NVML(nvmlDeviceGetEncoderSessions);
Return nvmlDeviceGetEncoderSessions(Device handle, unsigned* count, void*) {
    return with_device(handle, count, [&](const NvmlDevice& device) {
        return has_encoder(device.spec, H264) ? no_sessions(count) : ERROR_NOT_SUPPORTED;
    });
}

CUSLICE_NVML(nvmlDeviceGetFBCStats);
Return nvmlDeviceGetFBCStats(Device handle, FbcStats* out) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        *out = {};
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetFBCSessions);
Return nvmlDeviceGetFBCSessions(Device handle, unsigned* count, void*) {
    return with_device(handle, count, [&](const NvmlDevice&) { return no_sessions(count); });
}

CUSLICE_NVML(nvmlDeviceGetVirtualizationMode);
Return nvmlDeviceGetVirtualizationMode(Device handle, unsigned* out) {
    constexpr unsigned none = 0;
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, none); });
}

CUSLICE_NVML(nvmlDeviceGetAccountingMode);
Return nvmlDeviceGetAccountingMode(Device handle, Enable* out) {
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, FEATURE_DISABLED); });
}
