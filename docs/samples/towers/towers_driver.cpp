// SPDX-License-Identifier: Apache-2.0
// Towers with the driver API: c++ towers_driver.cpp -lcuda
#include <cuda.h>

#include "towers.h"

namespace {

void check(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    std::fprintf(stderr, "%s: %s\n", what, name ? name : "?");
    std::exit(1);
}
#define CHECK(call) check(call, #call)

struct Tower {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction gradient = nullptr;
    CUdeviceptr x = 0, y = 0, variables = 0, sums = 0;
    unsigned count = 0;
};

Tower make_tower(CUdevice device, const towers::Batch& batch, size_t begin, size_t end) {
    Tower tower;
    const size_t bytes = (end - begin) * sizeof(float);
    tower.count = static_cast<unsigned>(end - begin);
    CHECK(cuDevicePrimaryCtxRetain(&tower.context, device));
    CHECK(cuCtxSetCurrent(tower.context));
    CHECK(cuModuleLoadData(&tower.module, towers::kKernel));
    CHECK(cuModuleGetFunction(&tower.gradient, tower.module, "gradient"));
    CHECK(cuMemAlloc(&tower.x, bytes));
    CHECK(cuMemAlloc(&tower.y, bytes));
    CHECK(cuMemAlloc(&tower.variables, sizeof(towers::Variables)));
    CHECK(cuMemAlloc(&tower.sums, sizeof(towers::Sums)));
    CHECK(cuMemcpyHtoD(tower.x, batch.x.data() + begin, bytes));
    CHECK(cuMemcpyHtoD(tower.y, batch.y.data() + begin, bytes));
    char name[96] = "";
    size_t free = 0, total = 0;
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuMemGetInfo(&free, &total));
    std::printf("GPU %d: %s, %zu MiB, %u examples\n", device, name, total >> 20, tower.count);
    return tower;
}

// Only starts it: the towers work side by side.
void start(Tower& tower, const towers::Variables& variables) {
    CHECK(cuCtxSetCurrent(tower.context));
    CHECK(cuMemcpyHtoD(tower.variables, &variables, sizeof variables));
    CHECK(cuMemsetD32(tower.sums, 0, sizeof(towers::Sums) / 4));
    void* arguments[] = {&tower.x, &tower.y, &tower.variables, &tower.sums, &tower.count};
    CHECK(cuLaunchKernel(tower.gradient, (tower.count + towers::kThreads - 1) / towers::kThreads, 1, 1,
                         towers::kThreads, 1, 1, 0, nullptr, arguments, nullptr));
}

}  // namespace

int main() {
    CHECK(cuInit(0));
    int count = 0;
    CHECK(cuDeviceGetCount(&count));
    std::printf("Number of devices: %d\n", count);
    const towers::Batch batch = towers::make_batch(towers::kExamples);
    std::vector<Tower> all;
    for (int i = 0; i < count; i++)
        all.push_back(make_tower(i, batch, towers::shard_begin(towers::kExamples, count, i),
                                 towers::shard_begin(towers::kExamples, count, i + 1)));

    towers::Variables variables;
    bool ran = true;
    for (int number = 0; number < towers::kSteps && ran; number++) {
        for (Tower& tower : all)
            start(tower, variables);
        std::vector<towers::Sums> sums(all.size());
        for (size_t i = 0; i < all.size(); i++) {
            CHECK(cuCtxSetCurrent(all[i].context));
            CHECK(cuMemcpyDtoH(&sums[i], all[i].sums, sizeof sums[i]));
        }
        ran = towers::step(sums, towers::kExamples, number, &variables);
    }

    for (int i = 0; i < count; i++) {
        Tower& tower = all[static_cast<size_t>(i)];
        CHECK(cuCtxSetCurrent(tower.context));
        for (const CUdeviceptr memory : {tower.x, tower.y, tower.variables, tower.sums})
            CHECK(cuMemFree(memory));
        CHECK(cuModuleUnload(tower.module));
        CHECK(cuDevicePrimaryCtxRelease(i));
    }
    return towers::ended(ran, variables);
}
