// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/driver.h"
#include "fake/try.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <type_traits>

namespace cuslice::fake {

/// Holds the runtime's one lock. The thread can't be cancelled meanwhile: nobody would unlock.
class Lock {
  public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    int cancel_state_ = 0;
};

/// Loads and initialises the driver, once a process; later calls give the first one's answer.
/// cudaErrorInsufficientDriver: no driver, or an older one than the runtime; else cuInit's error. Thread-safe.
cudaError_t start();

/// start(), and sees to it that this thread has a current context: the one that it made current itself, whoever made
/// it, else the primary context of the device that it chose with cudaSetDevice (device 0 at first).
cudaError_t enter();

/// How many devices the driver shows. After start().
int device_count();

/// The driver's handle of a runtime ordinal; cudaErrorInvalidDevice for one that isn't there. After start().
cudaError_t device_handle(int ordinal, CUdevice* device);

/// The ordinal that calls of this thread go to. After start().
cudaError_t current_device(int* ordinal);

/// Makes the device's primary context this thread's (made if need be), and remembers the choice.
cudaError_t choose_device(int ordinal);

/// Retains the device's primary context without changing what is current. After start().
cudaError_t primary_context(int ordinal, CUcontext* context);

/// Destroys the device's primary context and all that was in it; the next call that needs it makes a new one.
cudaError_t reset_device(int ordinal);

/// Notes an error for cudaGetLastError and returns it. cudaErrorNotReady isn't noted (Programming Guide: "not
/// considered an error").
cudaError_t record(cudaError_t error);

/// This thread's last error; `clear`: and forgets it, unless its context is lost for good (sticky).
cudaError_t last_error(bool clear);

/// Forgets even a sticky error: the context is gone.
void forget_last_error();

// Since CUDA 10.1 a CUresult and a cudaError_t of the same meaning have the same number.
inline cudaError_t as_error(CUresult result) { return static_cast<cudaError_t>(result); }
inline cudaError_t as_error(cudaError_t error) { return error; }

/// The frame of a call that needs a context: enter, call, note the error.
template <class Call, class... Arguments>
cudaError_t in_context(Call call, Arguments... arguments) {
    cudaError_t error = enter();
    if (error == cudaSuccess)
        error = as_error(call(arguments...));
    return record(error);
}

/// The frame of a call that needs the driver, but makes no context.
template <class Call, class... Arguments>
cudaError_t started(Call call, Arguments... arguments) {
    cudaError_t error = start();
    if (error == cudaSuccess)
        error = as_error(call(arguments...));
    return record(error);
}

/// The frame of a call that names a device by its ordinal; `call` gets the driver's handle.
template <class Call>
cudaError_t on_device(int ordinal, Call call) {
    CUdevice device = 0;
    cudaError_t error = start();
    if (error == cudaSuccess)
        error = device_handle(ordinal, &device);
    if (error == cudaSuccess)
        error = as_error(call(device));
    return record(error);
}

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

/// A structure of the runtime's as the driver's structure of the same layout.
template <class To, class From>
To* same_layout(From* from) {
    // NOLINTNEXTLINE(misc-redundant-expression): a size may be the number that an alignment is
    static_assert(sizeof(To) == sizeof(From) && alignof(To) == alignof(From));
    static_assert(std::is_standard_layout_v<To> && std::is_standard_layout_v<From>);
    return reinterpret_cast<To*>(from);
}

}  // namespace cuslice::fake
