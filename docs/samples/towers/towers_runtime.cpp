// SPDX-License-Identifier: Apache-2.0
// Towers with the shared CUDA runtime: c++ towers_runtime.cpp -lcudart
#include <cuda_runtime_api.h>

#include "towers.h"

namespace {

void check(cudaError_t result, const char* what) {
    if (result == cudaSuccess)
        return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

struct Tower {
    int device = 0;
    float *x = nullptr, *y = nullptr;
    void *variables = nullptr, *sums = nullptr;
    unsigned count = 0;
};

template <typename Type>
void allocate(Type** memory, size_t bytes) {
    CHECK(cudaMalloc(reinterpret_cast<void**>(memory), bytes));
}

Tower make_tower(int device, const towers::Batch& batch, size_t begin, size_t end) {
    Tower tower;
    const size_t bytes = (end - begin) * sizeof(float);
    tower.device = device;
    tower.count = static_cast<unsigned>(end - begin);
    CHECK(cudaSetDevice(device));
    allocate(&tower.x, bytes);
    allocate(&tower.y, bytes);
    allocate(&tower.variables, sizeof(towers::Variables));
    allocate(&tower.sums, sizeof(towers::Sums));
    CHECK(cudaMemcpy(tower.x, batch.x.data() + begin, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(tower.y, batch.y.data() + begin, bytes, cudaMemcpyHostToDevice));
    cudaDeviceProp properties;
    size_t free = 0, total = 0;
    CHECK(cudaGetDeviceProperties(&properties, device));
    CHECK(cudaMemGetInfo(&free, &total));
    std::printf("GPU %d: %s, %zu MiB, %u examples\n", device, properties.name, total >> 20, tower.count);
    return tower;
}

// Only starts it: the towers work side by side.
void start(Tower& tower, const void* gradient, const towers::Variables& variables) {
    CHECK(cudaSetDevice(tower.device));
    CHECK(cudaMemcpy(tower.variables, &variables, sizeof variables, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(tower.sums, 0, sizeof(towers::Sums)));
    void* arguments[] = {&tower.x, &tower.y, &tower.variables, &tower.sums, &tower.count};
    CHECK(cudaLaunchKernel(gradient, dim3((tower.count + towers::kThreads - 1) / towers::kThreads),
                           dim3(towers::kThreads), arguments, 0, nullptr));
}

}  // namespace

int main() {
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    std::printf("Number of devices: %d\n", count);
    const towers::Batch batch = towers::make_batch(towers::kExamples);
    std::vector<Tower> all;
    for (int i = 0; i < count; i++)
        all.push_back(make_tower(i, batch, towers::shard_begin(towers::kExamples, count, i),
                                 towers::shard_begin(towers::kExamples, count, i + 1)));
    // One for all GPUs.
    cudaLibrary_t library = nullptr;
    cudaKernel_t gradient = nullptr;
    CHECK(cudaLibraryLoadData(&library, towers::kKernel, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cudaLibraryGetKernel(&gradient, library, "gradient"));

    towers::Variables variables;
    bool ran = true;
    for (int number = 0; number < towers::kSteps && ran; number++) {
        for (Tower& tower : all)
            start(tower, gradient, variables);
        std::vector<towers::Sums> sums(all.size());
        for (size_t i = 0; i < all.size(); i++) {
            CHECK(cudaSetDevice(all[i].device));
            CHECK(cudaMemcpy(&sums[i], all[i].sums, sizeof sums[i], cudaMemcpyDeviceToHost));
        }
        ran = towers::step(sums, towers::kExamples, number, &variables);
    }

    for (Tower& tower : all) {
        CHECK(cudaSetDevice(tower.device));
        for (void* memory : {static_cast<void*>(tower.x), static_cast<void*>(tower.y), tower.variables, tower.sums})
            CHECK(cudaFree(memory));
    }
    CHECK(cudaLibraryUnload(library));
    return towers::ended(ran, variables);
}
