// SPDX-License-Identifier: Apache-2.0
#include "fake/time/costs.h"

#include <tuple>

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

GpuSpec h200() {
    GpuSpec gpu;
    gpu.multiprocessors = 132;
    gpu.memory_clock = 3201;
    gpu.memory_bus_width = 6144;
    gpu.pcie_generation = 5;
    gpu.pcie_width = 16;
    return gpu;
}

KernelCosts costs(const std::string& text) {
    KernelCosts made;
    std::string error;
    INFO(text);
    REQUIRE(made.parse(text, error));
    return made;
}

}  // namespace

TEST_CASE("the first pattern that fits a kernel's name says what it costs") {
    const KernelCosts all = costs("gemm*=200us,*_wide=1ms/wave,*=10us");
    CHECK(all.kernel("gemm_wide", 1, 8, h200()).duration == 200'000);
    CHECK(all.kernel("add_wide", 1, 8, h200()).duration == 1'000'000);
    CHECK(all.kernel("add", 1'000'000, 8, h200()).duration == 10'000);
}

TEST_CASE("a kernel takes as many waves as its blocks need, and as many multiprocessors as they fill") {
    const KernelCosts all = costs("add=5us/wave");
    const auto [blocks, waves, width] = GENERATE(std::tuple{1U, 1U, 1U}, std::tuple{8U, 1U, 1U}, std::tuple{9U, 1U, 2U},
                                                 std::tuple{132U * 8, 1U, 132U}, std::tuple{132U * 8 + 1, 2U, 132U});
    CAPTURE(blocks);
    const Work work = all.kernel("add", blocks, 8, h200());
    CHECK(work.engine == Engine::compute);
    CHECK(work.duration == waves * 5000);
    CHECK(work.multiprocessors == width);
    CHECK(all.kernel("other", blocks, 8, h200()).duration == waves * kWaveTime);
}

TEST_CASE("a kernel can go on until it is released") {
    const KernelCosts all = costs("wait*=until,*=1ms");
    CHECK(all.kernel("wait_for_peer", 1, 8, h200()).held);
    CHECK_FALSE(all.kernel("add", 1, 8, h200()).held);
}

TEST_CASE("copies and fills take as long as their bytes need") {
    const uint64_t bytes = 1'000'000'000;
    const auto seconds = [](const Work& work) { return static_cast<double>(work.duration - kTransferTime) / 1e9; };
    CHECK(seconds(copy_of(Engine::copy_in, bytes, h200())) == Approx(1 / (16 * 0.8 * 3.938)).epsilon(1e-3));
    CHECK(seconds(fill_of(bytes, h200())) == Approx(1 / (3201e6 * 2 * 6144 / 8 / 1e9)).epsilon(1e-3));
    CHECK(seconds(copy_of(Engine::compute, bytes, h200())) ==
          Approx(2 * seconds(fill_of(bytes, h200()))).epsilon(1e-3));
    CHECK(copy_of(Engine::copy_out, 0, h200()).duration == kTransferTime);
    GpuSpec integrated = h200();
    integrated.integrated = true;
    CHECK(copy_of(Engine::copy_in, bytes, integrated).duration == copy_of(Engine::compute, bytes, h200()).duration);
}

TEST_CASE("what is no cost says what would be") {
    KernelCosts all;
    for (const std::string text :
         {"", "gemm", "=5us", "gemm=", "gemm=5", "gemm=5us/block", "gemm=until/wave", "gemm=5us,", "gemm=-1us"}) {
        std::string error;
        INFO(text);
        CHECK_FALSE(all.parse(text, error));
        CHECK(error.find("PATTERN=TIME") != std::string::npos);
    }
}
