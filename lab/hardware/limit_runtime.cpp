// SPDX-License-Identifier: Apache-2.0
// The same as limit_driver.cpp for a program on the CUDA runtime. Built three times: by the C++ compiler with the
// shared runtime, and, where nvcc is at hand, as CUDA C++ with a kernel of its own, with the shared and with the static
// runtime.
//
//   limit_runtime [MOST]    takes MOST bytes at the most (8 GiB)
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lab/hardware/management.h"
#include "lab/hardware/report.h"

using namespace cuslice::check;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr unsigned kCount = 1 << 20;

void must(cudaError_t result, const char* call) {
    if (result == cudaSuccess)
        return;
    std::fprintf(stderr, "%s: %s (%d): %s\n", call, cudaGetErrorName(result), static_cast<int>(result),
                 cudaGetErrorString(result));
    std::exit(1);
}
#define MUST(function, ...) must(function(__VA_ARGS__), #function)

#ifdef __CUDACC__
__global__ void saxpy(const float* x, float* y, float a) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += a * x[i];
}
bool run_kernel(const float* x, float* y) {
    saxpy<<<kCount / 256, 256>>>(x, y, 3);
    MUST(cudaGetLastError);
    return std::getenv("CUSLICE_FAKE") == nullptr;
}
#else
bool run_kernel(const float*, float*) { return false; }
#endif

std::string compute() {
    std::vector<float> x(kCount), y(kCount), back(kCount);
    for (unsigned i = 0; i < kCount; i++) {
        x[i] = static_cast<float>(i % 1013);
        y[i] = static_cast<float>(i % 7);
    }
    void *xs = nullptr, *ys = nullptr;
    const size_t bytes = kCount * sizeof(float);
    MUST(cudaMalloc, &xs, bytes);
    MUST(cudaMalloc, &ys, bytes);
    MUST(cudaMemcpy, xs, x.data(), bytes, cudaMemcpyHostToDevice);
    MUST(cudaMemcpy, ys, y.data(), bytes, cudaMemcpyHostToDevice);
    const bool ran = run_kernel(static_cast<const float*>(xs), static_cast<float*>(ys));
    MUST(cudaDeviceSynchronize);
    MUST(cudaMemcpy, back.data(), ys, bytes, cudaMemcpyDeviceToHost);
    MUST(cudaFree, xs);
    MUST(cudaFree, ys);
    for (unsigned i = 0; i < kCount; i++)
        if (back[i] != y[i] + (ran ? 3 * x[i] : 0))
            return "wrong at element " + std::to_string(i);
    return ran ? "right" : "right (copies; no kernel was run)";
}

std::string uuid_of(const cudaDeviceProp& properties) {
    char text[48], *at = text + std::snprintf(text, sizeof text, "GPU-");
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += std::snprintf(at, 3, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
    }
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    const uint64_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8192 * kMiB;
    cudaDeviceProp properties{};
    size_t free = 0, total = 0;
    const cudaError_t started = cudaGetDeviceProperties(&properties, 0);
#ifdef CUSLICE_CHECK_STATIC_RUNTIME
    if (started != cudaSuccess && std::getenv("CUSLICE_FAKE")) {
        tell("skipped",
             std::string("NVIDIA's own runtime does not start on the fake GPU: ") + cudaGetErrorName(started));
        return 77;
    }
#endif
    must(started, "cudaGetDeviceProperties");
    MUST(cudaMemGetInfo, &free, &total);
    tell("total", total);
    tell("free", free);

    std::vector<void*> blocks;
    uint64_t got = 0;
    cudaError_t refused = cudaSuccess;
    for (uint64_t size = 64 * kMiB; size >= 256 << 10; size /= 4) {
        while (got + size <= most) {
            void* block = nullptr;
            refused = cudaMalloc(&block, size);
            if (refused != cudaSuccess)
                break;
            blocks.push_back(block);
            got += size;
        }
    }
    cudaGetLastError();  // an out of memory is not sticky, but it is remembered
    tell("got", got);
    tell("refused", refused == cudaSuccess ? "not refused" : cudaGetErrorName(refused));
    if (const auto counted = counted_bytes(uuid_of(properties).c_str()))
        tell("counted", *counted);
    held();

    for (void* block : blocks)
        MUST(cudaFree, block);
    const std::string result = compute();
    tell("result", result);
    return result.rfind("right", 0) == 0 ? 0 : 1;
}
