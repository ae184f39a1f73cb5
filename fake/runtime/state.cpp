// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/state.h"

#include "fake/runtime/registry.h"
#include "fake/runtime/version.h"

#include <cstdlib>

namespace cuslice::fake {
namespace {

struct Device {
    CUdevice handle;
    CUcontext primary;    ///< valid while retained
    unsigned generation;  ///< counts this runtime's resets, so that other threads notice
    bool retained;
};

struct Thread {
    int chosen;        ///< the device of cudaSetDevice
    CUcontext bound;   ///< the primary context that this runtime made current here
    int bound_device;  ///< its device
    unsigned bound_generation;
    cudaError_t last_error;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<bool> tried{false};
constinit cudaError_t start_error = cudaSuccess;
constinit Device* devices = nullptr;
constinit int count = 0;
thread_local constinit Thread thread{};

void lock() { pthread_mutex_lock(&mutex); }
void unlock() { pthread_mutex_unlock(&mutex); }

cudaError_t start_locked() {
    // A child forked while another thread holds the lock must find it free.
    pthread_atfork(lock, unlock, unlock);
    if (!open_driver())
        return cudaErrorInsufficientDriver;
    int version = 0;
    if (CU(cuDriverGetVersion, 2020)(&version) != CUDA_SUCCESS || version / 1000 < runtime_version() / 1000) {
        return cudaErrorInsufficientDriver;
    }
    CUSLICE_TRY(as_error(CU(cuInit, 2000)(0U)));
    int found = 0;
    CUSLICE_TRY(as_error(CU(cuDeviceGetCount, 2000)(&found)));
    if (found <= 0)
        return cudaErrorNoDevice;
    devices = static_cast<Device*>(std::calloc(found, sizeof(Device)));
    if (devices == nullptr)
        return cudaErrorMemoryAllocation;
    for (int ordinal = 0; ordinal < found; ++ordinal) {
        CUSLICE_TRY(as_error(CU(cuDeviceGet, 2000)(&devices[ordinal].handle, ordinal)));
    }
    count = found;
    return cudaSuccess;
}

cudaError_t retain(Device& device, CUcontext* context, unsigned* generation) {
    Lock held;
    if (!device.retained) {
        const PrivateDriver* own = private_driver();
        CUSLICE_TRY(as_error(own != nullptr ? own->retain_primary(&device.primary, device.handle)
                                            : CU(cuDevicePrimaryCtxRetain, 7000)(&device.primary, device.handle)));
        device.retained = true;
    }
    *context = device.primary;
    *generation = device.generation;
    return cudaSuccess;
}

cudaError_t bind(int ordinal) {
    CUcontext context = nullptr;
    unsigned generation = 0;
    CUSLICE_TRY(retain(devices[ordinal], &context, &generation));
    CUSLICE_TRY(as_error(CU(cuCtxSetCurrent, 4000)(context)));
    thread.bound = context;
    thread.bound_device = ordinal;
    thread.bound_generation = generation;
    return cudaSuccess;
}

/// True where the current context is one that this runtime bound here, and that has been reset since.
bool outdated(CUcontext current) {
    if (current != thread.bound)
        return false;
    Lock held;
    return devices[thread.bound_device].generation != thread.bound_generation;
}

bool is_sticky(cudaError_t error) {
    switch (
        error) {  // "the process must be terminated" or "leaves the process in an inconsistent state" (driver_types.h)
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorContained:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case cudaErrorTensorMemoryLeak:
        case cudaErrorExternalDevice:
            return true;
        default:
            return false;
    }
}

}  // namespace

Lock::Lock() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    lock();
}

Lock::~Lock() {
    unlock();
    pthread_setcancelstate(cancel_state_, nullptr);
}

cudaError_t start() {
    if (!tried.load(std::memory_order_acquire)) {
        Lock held;
        if (!tried.load(std::memory_order_relaxed)) {
            start_error = start_locked();
            tried.store(true, std::memory_order_release);
        }
    }
    return start_error;
}

cudaError_t enter() {
    CUSLICE_TRY(start());
    CUcontext current = nullptr;
    CUSLICE_TRY(as_error(CU(cuCtxGetCurrent, 4000)(&current)));
    return current == nullptr || outdated(current) ? bind(thread.chosen) : cudaSuccess;
}

int device_count() { return count; }

cudaError_t device_handle(int ordinal, CUdevice* device) {
    if (ordinal < 0 || ordinal >= count)
        return cudaErrorInvalidDevice;
    *device = devices[ordinal].handle;
    return cudaSuccess;
}

cudaError_t current_device(int* ordinal) {
    CUcontext current = nullptr;
    CUSLICE_TRY(as_error(CU(cuCtxGetCurrent, 4000)(&current)));
    if (current == nullptr || current == thread.bound) {
        *ordinal = thread.chosen;
        return cudaSuccess;
    }
    // A context that the program made current through the driver API decides.
    CUdevice device = 0;
    CUSLICE_TRY(as_error(CU(cuCtxGetDevice, 2000)(&device)));
    for (int i = 0; i < count; ++i) {
        if (devices[i].handle == device) {
            *ordinal = i;
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidDevice;
}

cudaError_t choose_device(int ordinal) {
    if (ordinal < 0 || ordinal >= count)
        return cudaErrorInvalidDevice;
    CUSLICE_TRY(bind(ordinal));
    thread.chosen = ordinal;
    return cudaSuccess;
}

cudaError_t primary_context(int ordinal, CUcontext* context) {
    if (ordinal < 0 || ordinal >= count)
        return cudaErrorInvalidDevice;
    unsigned generation = 0;
    return retain(devices[ordinal], context, &generation);
}

cudaError_t reset_device(int ordinal) {
    Device& device = devices[ordinal];
    Lock held;
    CUSLICE_TRY(as_error(CU(cuDevicePrimaryCtxReset, 11000)(device.handle)));
    if (device.retained) {
        // "Resetting the primary context does not release it" (cuda.h): our own hold on it ends here.
        const PrivateDriver* own = private_driver();
        own != nullptr ? own->release_primary(device.handle) : CU(cuDevicePrimaryCtxRelease, 11000)(device.handle);
        forget_modules(device.primary);
        device.retained = false;
    }
    ++device.generation;
    return cudaSuccess;
}

cudaError_t record(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady && !is_sticky(thread.last_error))
        thread.last_error = error;
    return error;
}

cudaError_t last_error(bool clear) {
    const cudaError_t error = thread.last_error;
    if (clear && !is_sticky(error))
        thread.last_error = cudaSuccess;
    return error;
}

void forget_last_error() { thread.last_error = cudaSuccess; }

}  // namespace cuslice::fake
