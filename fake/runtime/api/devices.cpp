// SPDX-License-Identifier: Apache-2.0
// Devices: how many, which one is current, what they can do.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

cudaError_t cudaGetDeviceCount(int* count) {
    if (count == nullptr)
        return record(cudaErrorInvalidValue);
    const cudaError_t error = start();
    *count = error == cudaSuccess ? device_count() : 0;
    return record(error);
}

cudaError_t cudaGetDevice(int* device) {
    return device == nullptr ? record(cudaErrorInvalidValue) : started(current_device, device);
}

cudaError_t cudaSetDevice(int device) { return started(choose_device, device); }

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    if ((flags & ~cudaInitDeviceFlagsAreValid) != 0)
        return record(cudaErrorInvalidValue);
    return on_device(device, [&](CUdevice handle) {
        if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
            CUSLICE_TRY(as_error(CU(cuDevicePrimaryCtxSetFlags, 11000)(handle, device_flags)));
        }
        CUcontext context = nullptr;
        return primary_context(device, &context);
    });
}

CUSLICE_FORWARD_DEVICE(cudaDeviceGetAttribute, cuDeviceGetAttribute, 2000, value, attribute, device)

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pci_bus_id) {
    CUdevice found = 0;
    CUSLICE_TRY(started(CU(cuDeviceGetByPCIBusId, 4010), &found, pci_bus_id));
    for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
        CUdevice handle = 0;
        if (device_handle(ordinal, &handle) == cudaSuccess && handle == found && device != nullptr) {
            *device = ordinal;
            return cudaSuccess;
        }
    }
    return record(device == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
}

CUSLICE_FORWARD_DEVICE(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, pci_bus_id, length, device)

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format, int device) {
    if (format == nullptr || width == nullptr)
        return record(cudaErrorInvalidValue);
    // The driver's answer depends on the texel's size alone.
    const int bits[] = {format->x, format->y, format->z, format->w};
    unsigned channels = 0;
    for (const int depth : bits)
        channels += depth != 0;
    const CUarray_format as_format = bits[0] == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                                     : bits[0] == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                                     : CU_AD_FORMAT_UNSIGNED_INT32;
    return on_device(device, [&](CUdevice handle) {
        return CU(cuDeviceGetTexture1DLinearMaxWidth, 11010)(width, as_format, channels, handle);
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
    return on_device(source, [&](CUdevice from) {
        CUdevice to = 0;
        CUSLICE_TRY(device_handle(destination, &to));
        return as_error(
            CU(cuDeviceGetP2PAttribute, 8000)(value, static_cast<CUdevice_P2PAttribute>(attribute), from, to));
    });
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
    return on_device(device, [&](CUdevice from) {
        CUdevice to = 0;
        CUSLICE_TRY(device_handle(peer, &to));
        return as_error(CU(cuDeviceCanAccessPeer, 4000)(can_access, from, to));
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    return in_context([&] {
        CUcontext context = nullptr;
        CUSLICE_TRY(primary_context(peer, &context));
        return as_error(CU(cuCtxEnablePeerAccess, 4000)(context, flags));
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return in_context([&] {
        CUcontext context = nullptr;
        CUSLICE_TRY(primary_context(peer, &context));
        return as_error(CU(cuCtxDisablePeerAccess, 4000)(context));
    });
}
