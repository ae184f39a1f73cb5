// SPDX-License-Identifier: Apache-2.0
// A program on the CUDA runtime that works on every GPU: what it is told of each, a kernel's values there, a copy
// between two, and a reset. Built by nvcc with the static runtime, as nvcc links it by default.
//
//   parts_runtime COUNT    exits with 1 if there are not COUNT GPUs, or anything is not as it should be
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr unsigned kCount = 1 << 20;
int wrong = 0;

void expect(bool good, const char* what, int gpu) {
    if (good)
        return;
    wrong++;
    std::printf("wrong: %s, GPU %d (%s)\n", what, gpu, cudaGetErrorName(cudaPeekAtLastError()));
}

__global__ void twice(int* values) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] *= 2;
}

std::vector<int> numbers(int gpu) {
    std::vector<int> all(kCount);
    for (unsigned i = 0; i < kCount; i++)
        all[i] = static_cast<int>(i) + gpu;
    return all;
}

// The fake GPU runs no kernel.
int factor() { return std::getenv("CUSLICE_FAKE") ? 1 : 2; }

bool is_multiple(const std::vector<int>& values, int gpu) {
    for (unsigned i = 0; i < kCount; i++)
        if (values[i] != factor() * (static_cast<int>(i) + gpu))
            return false;
    return true;
}

int* work_on(int gpu, std::set<std::string>& places) {
    expect(cudaSetDevice(gpu) == cudaSuccess, "cudaSetDevice", gpu);
    cudaDeviceProp properties{};
    size_t free = 0, total = 0;
    char place[32] = "";
    expect(cudaGetDeviceProperties(&properties, gpu) == cudaSuccess, "cudaGetDeviceProperties", gpu);
    expect(cudaDeviceGetPCIBusId(place, sizeof place, gpu) == cudaSuccess, "cudaDeviceGetPCIBusId", gpu);
    expect(places.insert(place).second, "a place of its own", gpu);
    expect(cudaMemGetInfo(&free, &total) == cudaSuccess, "cudaMemGetInfo", gpu);
    expect(total == properties.totalGlobalMem, "one total", gpu);
    const std::vector<int> sent = numbers(gpu);
    std::vector<int> back(kCount);
    const size_t bytes = kCount * sizeof(int);
    int* values = nullptr;
    cudaStream_t stream = nullptr;
    expect(cudaStreamCreate(&stream) == cudaSuccess, "cudaStreamCreate", gpu);
    expect(cudaMalloc(&values, bytes) == cudaSuccess, "cudaMalloc", gpu);
    cudaMemcpyAsync(values, sent.data(), bytes, cudaMemcpyHostToDevice, stream);
    twice<<<kCount / 256, 256, 0, stream>>>(values);
    cudaMemcpyAsync(back.data(), values, bytes, cudaMemcpyDeviceToHost, stream);
    expect(cudaStreamSynchronize(stream) == cudaSuccess, "a kernel", gpu);
    expect(is_multiple(back, gpu), "a kernel's values", gpu);
    void* too_much = nullptr;
    expect(cudaMalloc(&too_much, total) == cudaErrorMemoryAllocation, "a refusal of more than the total", gpu);
    cudaGetLastError();
    cudaPointerAttributes about{};
    expect(cudaPointerGetAttributes(&about, values) == cudaSuccess && about.device == gpu, "the owner of memory", gpu);
    std::printf("GPU %d: %s, %s, %zu MiB\n", gpu, properties.name, place, total >> 20);
    return values;
}

void copy_to_next(const std::vector<int*>& memory, int gpu) {
    const int count = static_cast<int>(memory.size()), next = (gpu + 1) % count;
    std::vector<int> back(kCount);
    const size_t bytes = kCount * sizeof(int);
    expect(cudaMemcpyPeer(memory[next], next, memory[gpu], gpu, bytes) == cudaSuccess, "cudaMemcpyPeer", gpu);
    cudaMemcpy(back.data(), memory[next], bytes, cudaMemcpyDeviceToHost);
    expect(is_multiple(back, gpu), "values of the one before", next);
}

}  // namespace

int main(int argc, char** argv) {
    const int wanted = argc > 1 ? std::atoi(argv[1]) : 1;
    int count = -1, later = -1;
    const cudaError_t counted = cudaGetDeviceCount(&count);
    std::printf("%d GPUs (%s)\n", count, cudaGetErrorName(counted));
    if (counted != cudaSuccess || count != wanted)
        return 1;
    std::set<std::string> places;
    std::vector<int*> memory;
    for (int gpu = 0; gpu < count; gpu++)
        memory.push_back(work_on(gpu, places));
    copy_to_next(memory, 0);
    expect(cudaSetDevice(count) == cudaErrorInvalidDevice, "one too many", count);
    cudaGetLastError();
    for (int gpu = 0; gpu < count; gpu++) {
        cudaSetDevice(gpu);
        expect(cudaDeviceReset() == cudaSuccess, "cudaDeviceReset", gpu);
    }
    expect(cudaGetDeviceCount(&later) == cudaSuccess && later == count, "the count after resets", 0);
    std::printf("%d wrong\n", wrong);
    return wrong ? 1 : 0;
}
