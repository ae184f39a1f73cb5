// SPDX-License-Identifier: Apache-2.0
// Launches: what the driver checks, as the runtime tells it. No kernel runs.

#include <cstddef>
#include <string>

#include "tests/fake/driver/made_up_fat_binary.h"
#include "tests/fake/runtime/registered.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("a launch is checked") {
    Registered code;
    int value = 1;
    void* arguments[] = {&value, &value};
    const auto launch = RT(cudaLaunchKernel);
    CHECK(launch(&code.fill, dim3(10), dim3(128), arguments, 0, nullptr) == cudaSuccess);
    CHECK(launch(&code.bump, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess);
    CHECK(launch(&code.bump_again, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
    CHECK(launch(&code.bump, dim3(1), dim3(2048), nullptr, 0, nullptr) == cudaErrorInvalidConfiguration);
    CHECK(launch(&code.bump, dim3(0), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidConfiguration);
    CHECK(RT(cudaGetLastError)() == cudaErrorInvalidConfiguration);
    CHECK(launch(&code.counter, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
    CHECK(launch(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
    const auto bad_stream = reinterpret_cast<cudaStream_t>(&value);
    CHECK(launch(&code.bump, dim3(1), dim3(1), nullptr, 0, bad_stream) == cudaErrorInvalidResourceHandle);
}

SCENARIO_IN_CHILD("a launch may go through a kernel's handle or a configuration") {
    Registered code;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(2);
    config.blockDim = dim3(64);
    CHECK(RT(cudaLaunchKernelExC)(&config, &code.bump, nullptr) == cudaSuccess);
    config.blockDim = dim3(4096);
    CHECK(RT(cudaLaunchKernelExC)(&config, &code.bump, nullptr) == cudaErrorInvalidConfiguration);
    cudaFunction_t function = nullptr;
    CHECK(RT(cudaGetFuncBySymbol)(&function, &code.bump) == cudaSuccess);
    CHECK(function != nullptr);
    // From CUDA 12 on the driver's own handle may stand for the kernel.
    const bool old = runtime_major() < 12;
    CHECK(RT(cudaLaunchKernel)(function, dim3(1), dim3(1), nullptr, 0, nullptr) ==
          (old ? cudaErrorInvalidDeviceFunction : cudaSuccess));
    if (old)
        return;
    cudaKernel_t kernel = nullptr;
    const auto get = reinterpret_cast<cudaError_t (*)(cudaKernel_t*, const void*)>(runtime_function("__cudaGetKernel"));
    const auto launch = reinterpret_cast<cudaError_t (*)(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t)>(
        runtime_function("__cudaLaunchKernel"));
    REQUIRE(get(&kernel, &code.bump) == cudaSuccess);
    CHECK(launch(kernel, dim3(1), dim3(32), nullptr, 0, nullptr) == cudaSuccess);
    CHECK(get(&kernel, &code.counter) == cudaErrorInvalidDeviceFunction);
}

SCENARIO_IN_CHILD("configurations are kept in a stack") {
    using Push = unsigned (*)(dim3, dim3, size_t, void*);
    using Pop = cudaError_t (*)(dim3*, dim3*, size_t*, void*);
    const auto push = reinterpret_cast<Push>(runtime_function("__cudaPushCallConfiguration"));
    const auto pop = reinterpret_cast<Pop>(runtime_function("__cudaPopCallConfiguration"));
    dim3 grid;
    dim3 block;
    size_t shared = 0;
    cudaStream_t stream = nullptr;
    CHECK(push(dim3(1, 2, 3), dim3(4, 5, 6), 7, cudaStreamPerThread) == 0);
    CHECK(push(dim3(8), dim3(9), 10, nullptr) == 0);
    CHECK(pop(&grid, &block, &shared, &stream) == cudaSuccess);
    CHECK(grid.x == 8);
    CHECK(shared == 10);
    CHECK(stream == nullptr);
    CHECK(pop(&grid, &block, &shared, &stream) == cudaSuccess);
    CHECK(grid.z == 3);
    CHECK(block.y == 5);
    CHECK(shared == 7);
    CHECK(stream == cudaStreamPerThread);
    CHECK(pop(&grid, &block, &shared, &stream) == cudaErrorMissingConfiguration);
}

SCENARIO_IN_CHILD("a kernel has attributes and an occupancy") {
    Registered code;
    cudaFuncAttributes attributes{};
    REQUIRE(RT(cudaFuncGetAttributes)(&attributes, &code.fill) == cudaSuccess);
    CHECK(attributes.maxThreadsPerBlock > 0);
    CHECK(RT(cudaFuncSetAttribute)(&code.fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024) == cudaSuccess);
    int blocks = 0;
    CHECK(RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, &code.fill, 128, 0) == cudaSuccess);
    CHECK(blocks > 0);
    CHECK(RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, &code.fill, 128, 1025) == cudaSuccess);
    CHECK(blocks == 0);
    CHECK(RT(cudaFuncGetAttributes)(&attributes, &code.counter) == cudaErrorInvalidDeviceFunction);
    if (runtime_major() < 12)
        return;
    const char* name = nullptr;
    CHECK(RT(cudaFuncGetName)(&name, &code.fill) == cudaSuccess);
    CHECK(std::string(name) == "_Z4fillPii");
}

SCENARIO_IN_CHILD("a kernel's code is what was made for the GPU that it is on") {
    // By these CUB chooses how it launches, and refuses to launch code that is older than any it knows.
    Registered code;
    cudaFuncAttributes attributes{};
    REQUIRE(RT(cudaFuncGetAttributes)(&attributes, &code.fill) == cudaSuccess);
    CHECK(attributes.ptxVersion == 80);
    CHECK(attributes.binaryVersion == 80);
    REQUIRE(RT(cudaSetDevice)(2) == cudaSuccess);
    REQUIRE(RT(cudaFuncGetAttributes)(&attributes, &code.fill) == cudaSuccess);
    CHECK(attributes.ptxVersion == 75);
    CHECK(attributes.binaryVersion == 75);
}

SCENARIO_IN_CHILD("clusters are counted as the driver counts them", Machine{.spec = "h200,l4"}) {
    Registered code;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(8);
    config.blockDim = dim3(128);
    config.attrs = &attribute;
    config.numAttrs = 1;
    int number = 0;
    CHECK(RT(cudaOccupancyMaxActiveClusters)(&number, &code.fill, &config) == cudaSuccess);
    CHECK(number == 528);
    config.numAttrs = 0;
    CHECK(RT(cudaOccupancyMaxPotentialClusterSize)(&number, &code.fill, &config) == cudaSuccess);
    CHECK(number == 8);
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    CHECK(RT(cudaOccupancyMaxActiveClusters)(&number, &code.fill, &config) == cudaErrorNotSupported);
}

namespace {

/// A fat binary of nvcc's with code that can't be read, but for the GPUs that it says it is for.
class FatBinary {
  public:
    explicit FatBinary(const std::string& entries) : container_(fake_test::container(entries)) {
        wrapper.container = container_.data();
    }
    FatBinary(const FatBinary&) = delete;

    struct {
        unsigned magic = 0x466243b1, version = 1;
        const void* container = nullptr;
        const void* name = nullptr;
    } wrapper;

  private:
    std::string container_;
};

std::string ptx_for(unsigned capability) { return fake_test::entry(1, capability, 0x8011, "zzzz"); }
std::string cubin_for(unsigned capability) { return fake_test::entry(2, capability, 0x8011, "zzzz"); }

}  // namespace

// The first two: H200, driver 580.159.04, 2026-11-27.
SCENARIO_IN_CHILD("a kernel's versions are those of the code that its GPU takes", Machine{.spec = "h200,rtx3090"}) {
    FatBinary old(ptx_for(75) + ptx_for(70)), exact(cubin_for(90) + ptx_for(90)), both(cubin_for(80) + ptx_for(75));
    const Registered of_old(&old.wrapper), of_exact(&exact.wrapper), of_both(&both.wrapper);
    const auto versions = [](const void* kernel) {
        cudaFuncAttributes attributes{};
        CHECK(RT(cudaFuncGetAttributes)(&attributes, kernel) == cudaSuccess);
        return attributes.ptxVersion * 1000 + attributes.binaryVersion;
    };
    CHECK(versions(&of_old.fill) == 75090);
    CHECK(versions(&of_exact.fill) == 90090);
    CHECK(versions(&of_both.fill) == 75090);
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    CHECK(versions(&of_old.fill) == 75086);
    CHECK(versions(&of_both.fill) == 80080);
}

// H200, driver 580.159.04, 2026-11-27.
SCENARIO_IN_CHILD("a kernel without code for its GPU has no attributes and isn't launched",
                  Machine{.spec = "h200,a100-40g"}) {
    FatBinary ampere(cubin_for(80) + cubin_for(86));
    Registered code(&ampere.wrapper);
    cudaFuncAttributes attributes{};
    int blocks = 0;
    const auto launch = [&] { return RT(cudaLaunchKernel)(&code.bump, dim3(1), dim3(1), nullptr, 0, nullptr); };
    CHECK(RT(cudaFuncGetAttributes)(&attributes, &code.bump) == cudaErrorNoKernelImageForDevice);
    CHECK(RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, &code.bump, 128, 0) ==
          cudaErrorNoKernelImageForDevice);
    CHECK(launch() == cudaErrorNoKernelImageForDevice);
    CHECK(RT(cudaGetLastError)() == cudaErrorNoKernelImageForDevice);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    CHECK(launch() == cudaSuccess);
    // More of relocatable code is listed elsewhere.
    ampere.wrapper.version = 2;
    REQUIRE(RT(cudaSetDevice)(0) == cudaSuccess);
    CHECK(launch() == cudaSuccess);
}
