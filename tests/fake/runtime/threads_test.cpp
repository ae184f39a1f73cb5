// SPDX-License-Identifier: Apache-2.0
// Per-thread state: the device and the last error.

#include <cstddef>
#include <thread>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("each thread has a device and a last error of its own") {
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    CHECK(RT(cudaSetDevice)(42) == cudaErrorInvalidDevice);
    int device = -1;
    cudaError_t error = cudaErrorUnknown;
    std::thread([&] {
        RT(cudaGetDevice)(&device);
        error = RT(cudaGetLastError)();
        RT(cudaSetDevice)(2);
    }).join();
    CHECK(device == 0);
    CHECK(error == cudaSuccess);
    CHECK(RT(cudaGetDevice)(&device) == cudaSuccess);
    CHECK(device == 1);
    CHECK(RT(cudaGetLastError)() == cudaErrorInvalidDevice);
}

SCENARIO_IN_CHILD("threads share a device's context") {
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    cudaError_t error = cudaErrorUnknown;
    std::thread([&] { error = RT(cudaFree)(pointer); }).join();
    CHECK(error == cudaSuccess);
}

SCENARIO_IN_CHILD("a thread goes on after another one has reset its device") {
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    cudaError_t error = cudaErrorUnknown;
    std::thread([&] { error = RT(cudaDeviceReset)(); }).join();
    CHECK(error == cudaSuccess);
    CHECK(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    CHECK(RT(cudaMemset)(pointer, 0, 4096) == cudaSuccess);
}

SCENARIO_IN_CHILD("many threads start at once") {
    std::vector<std::thread> threads;
    std::vector<cudaError_t> errors(16, cudaErrorUnknown);
    for (size_t i = 0; i < errors.size(); ++i) {
        threads.emplace_back([&errors, i] {
            void* pointer = nullptr;
            errors[i] = RT(cudaSetDevice)(static_cast<int>(i % 3));
            for (int round = 0; round < 100 && errors[i] == cudaSuccess; ++round) {
                errors[i] = RT(cudaMalloc)(&pointer, 4096 * (i + 1));
                if (errors[i] == cudaSuccess)
                    errors[i] = RT(cudaFree)(pointer);
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const cudaError_t error : errors)
        CHECK(error == cudaSuccess);
}
