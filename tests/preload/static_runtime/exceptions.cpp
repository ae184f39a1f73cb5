// SPDX-License-Identifier: Apache-2.0
// A program with a static runtime that throws: past its own calls of the runtime, and within a function that the
// runtime calls.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <stdexcept>

namespace {

void check(cudaError_t error) {
    if (error != cudaSuccess)
        throw std::runtime_error(cudaGetErrorName(error));
}

// Released while an exception goes by.
struct Memory {
    explicit Memory(size_t bytes) { check(cudaMalloc(&address, bytes)); }
    ~Memory() { std::printf("freed: %d\n", cudaFree(address)); }
    void* address = nullptr;
};

void CUDART_CB call_back(void* caught) {
    try {
        check(cudaErrorUnknown);
    } catch (const std::runtime_error& error) {
        *static_cast<bool*>(caught) = true;
    }
}

}  // namespace

int main() {
    bool caught = false;
    try {
        check(cudaLaunchHostFunc(nullptr, call_back, &caught));
        check(cudaDeviceSynchronize());
        const Memory first(1 << 20);
        const Memory second(size_t{1} << 50);
    } catch (const std::runtime_error& error) {
        std::printf("caught: %s, in the callback: %d\n", error.what(), caught);
    }
    return 0;
}
