// Which devices there are and what they are.

#include <cstring>

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// The GPU of an ordinal, checked together with the place for the answer.
CUresult device_and(const void* out, CUdevice device, Gpu*& gpu) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    gpu = driver().gpu(device);
    return gpu == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult get_uuid(CUuuid* out, CUdevice device) {
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(out, device, gpu); bad != CUDA_SUCCESS) return bad;
    std::memcpy(out->bytes, gpu->spec.uuid.data(), gpu->spec.uuid.size());
    return CUDA_SUCCESS;
}

CUresult copy_text(char* out, int size, const std::string& text) {
    if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::strncpy(out, text.c_str(), static_cast<std::size_t>(size));
    out[size - 1] = '\0';
    return CUDA_SUCCESS;
}

/// Peers reach each other over NVLink where both have it, else over PCI Express from Pascal on.
bool peers(const GpuSpec& a, const GpuSpec& b) {
    return a.uuid != b.uuid && a.major >= 6 && b.major >= 6 && a.major == b.major;
}

}  // namespace

CUresult CUDAAPI cuDeviceGetCount(int* count) {
    CUSLICE_ENTER(cuDeviceGetCount)
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver().gpus.size());
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
    CUSLICE_ENTER(cuDeviceGet)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(device, ordinal, gpu); bad != CUDA_SUCCESS) return bad;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int len, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetName)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(name, device, gpu); bad != CUDA_SUCCESS) return bad;
    return copy_text(name, len, gpu->spec.name);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetUuid)
    return get_uuid(uuid, device);
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetUuid_v2)
    return get_uuid(uuid, device);
}

CUresult CUDAAPI cuDeviceGetLuid(char* luid, unsigned int* mask, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetLuid)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(luid, device, gpu); bad != CUDA_SUCCESS) return bad;
    if (mask == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;  // Windows alone has LUIDs
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    CUSLICE_ENTER(cuDeviceTotalMem_v2)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(bytes, device, gpu); bad != CUDA_SUCCESS) return bad;
    *bytes = gpu->capacity();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
    CUSLICE_ENTER(cuDeviceTotalMem)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(bytes, device, gpu); bad != CUDA_SUCCESS) return bad;
    // 32 bits: what does not fit is said as the most that does.
    *bytes = gpu->capacity() > 0xffffffffULL ? 0xffffffffU : static_cast<unsigned>(gpu->capacity());
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetAttribute)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(value, device, gpu); bad != CUDA_SUCCESS) return bad;
    int found = 0;
    if (!device_attribute(gpu->spec, attribute, found)) return CUDA_ERROR_INVALID_VALUE;
    *value = found;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    CUSLICE_ENTER(cuDeviceComputeCapability)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(major, device, gpu); bad != CUDA_SUCCESS) return bad;
    if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = gpu->spec.major;
    *minor = gpu->spec.minor;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop* prop, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetProperties)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(prop, device, gpu); bad != CUDA_SUCCESS) return bad;
    const auto value = [&](CUdevice_attribute attribute) {
        int number = 0;
        device_attribute(gpu->spec, attribute, number);
        return number;
    };
    prop->maxThreadsPerBlock = max_threads_per_block;
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = static_cast<int>(max_block[i]);
        prop->maxGridSize[i] = static_cast<int>(max_grid[i]);
    }
    prop->sharedMemPerBlock = shared_per_block;
    prop->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = warp_size;
    prop->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int len, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetPCIBusId)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(id, device, gpu); bad != CUDA_SUCCESS) return bad;
    return copy_text(id, len, pci_text(gpu->spec.pci));
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
    CUSLICE_ENTER(cuDeviceGetByPCIBusId)
    PciAddress pci;
    if (device == nullptr || id == nullptr || !parse_pci(id, pci)) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& gpu : driver().gpus) {
        if (!(gpu->spec.pci == pci)) continue;
        *device = gpu->ordinal;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    CUSLICE_ENTER(cuDeviceCanAccessPeer)
    Gpu *gpu = nullptr, *other = nullptr;
    if (const CUresult bad = device_and(can, device, gpu); bad != CUDA_SUCCESS) return bad;
    if (const CUresult bad = device_and(can, peer, other); bad != CUDA_SUCCESS) return bad;
    *can = peers(gpu->spec, other->spec);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                         CUdevice target) {
    CUSLICE_ENTER(cuDeviceGetP2PAttribute)
    Gpu *gpu = nullptr, *other = nullptr;
    if (const CUresult bad = device_and(value, source, gpu); bad != CUDA_SUCCESS) return bad;
    if (const CUresult bad = device_and(value, target, other); bad != CUDA_SUCCESS) return bad;
    if (gpu == other) return CUDA_ERROR_INVALID_DEVICE;
    const bool reachable = peers(gpu->spec, other->spec);
    const bool linked = reachable && gpu->spec.nvlink && other->spec.nvlink;
    switch (static_cast<int>(attribute)) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = linked ? 0 : 1;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
            *value = reachable;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            *value = linked;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format format, unsigned channels,
                                                    CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetTexture1DLinearMaxWidth)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(width, device, gpu); bad != CUDA_SUCCESS) return bad;
    const bool known = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8 ||
                       format == CU_AD_FORMAT_UNSIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT16 ||
                       format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32 ||
                       format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT;
    if (!known || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
    *width = 268435456;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
    CUSLICE_ENTER(cuDeviceGetExecAffinitySupport)
    Gpu* gpu = nullptr;
    if (const CUresult bad = device_and(supported, device, gpu); bad != CUDA_SUCCESS) return bad;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
}
