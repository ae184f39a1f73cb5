// SPDX-License-Identifier: Apache-2.0
// Registers device code with two kernels and three variables by hand, as nvcc's host code does before main.
#pragma once

#include <vector_types.h>

#include <cstddef>

#include "tests/fake/runtime/scenario.h"

namespace cuslice::tests {

/// The host addresses by which a program knows its kernels and variables.
struct Registered {
    using Register = void** (*)(void*);
    using Handle = void (*)(void**);
    using Function = void (*)(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
    using Variable = void (*)(void**, char*, char*, const char*, int, size_t, int, int);
    using Managed = void (*)(void**, void**, char*, const char*, int, size_t, int, int);

    /// By default with device code that is none of nvcc's, which is taken to be for any GPU.
    explicit Registered(void* device_code = nullptr) {
        handle = reinterpret_cast<Register>(runtime_function("__cudaRegisterFatBinary"))(device_code);
        const auto function = reinterpret_cast<Function>(runtime_function("__cudaRegisterFunction"));
        const auto variable = reinterpret_cast<Variable>(runtime_function("__cudaRegisterVar"));
        const auto managed_variable = reinterpret_cast<Managed>(runtime_function("__cudaRegisterManagedVar"));
        function(handle, &fill, &fill, "_Z4fillPii", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
        function(handle, &bump, &bump, "_Z4bumpv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
        // As with relocatable device code: another translation unit registers the same name.
        function(handle, &bump_again, &bump_again, "_Z4bumpv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
        variable(handle, &counter, &counter, "counter", 0, 16, 0, 0);
        variable(handle, &scale, &scale, "scale", 0, 4, 1, 0);
        managed_variable(handle, reinterpret_cast<void**>(&managed), &counter, "managed", 0, sizeof(int), 0, 0);
        reinterpret_cast<Handle>(runtime_function("__cudaRegisterFatBinaryEnd"))(handle);
    }
    void unregister() { reinterpret_cast<Handle>(runtime_function("__cudaUnregisterFatBinary"))(handle); }

    void** handle = nullptr;
    char fill = 0;
    char bump = 0;
    char bump_again = 0;
    char counter = 0;
    char scale = 0;
    int* managed = nullptr;
};

}  // namespace cuslice::tests
