// SPDX-License-Identifier: Apache-2.0
// State of a GPU that its partitions share.
#include "virtual_gpu/gpu/physical_gpu.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "tests/catch.h"
#include "tests/virtual_gpu/gpu/made_up_nvml.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kTotal = 16384 * kMiB, kUnit = Budget::kUnit;

/// A GPU with parts of these limits, which are looked at by their places alone.
struct Scene {
    explicit Scene(const std::vector<uint64_t>& limits) : budgets(limits.size()), slices(limits.size()) {
        gpu->open({}, kTotal);
        for (size_t i = 0; i < limits.size(); i++) {
            slices[i].limit = limits[i];
            gpu->add({.gpu = &part(i), .device = static_cast<CUdevice>(i), .slice = &slices[i], .budget = &budgets[i]});
        }
    }
    VirtualGpu& part(size_t i) { return *reinterpret_cast<VirtualGpu*>(&places[i]); }
    /// Each partition's share of this many bytes that the driver takes.
    std::vector<uint64_t> shares(uint64_t bytes) {
        std::vector<uint64_t> all;
        for (size_t i = 0; i < budgets.size(); i++)
            all.push_back(gpu->share_of(part(i), bytes));
        return all;
    }
    std::unique_ptr<PhysicalGpu> gpu = std::make_unique<PhysicalGpu>();
    std::vector<Budget> budgets;
    std::vector<Slice> slices;
    alignas(64) char places[8][64] = {};
};

using Bytes = std::vector<uint64_t>;

Slice slice_of(uint64_t limit) {
    Slice slice;
    slice.limited = true;
    slice.limit = limit;
    return slice;
}

}  // namespace

TEST_CASE("a part's share in what the driver takes is as its limit is, and together it is all of it") {
    CHECK(Scene({1024 * kMiB}).shares(100 * kMiB) == Bytes{100 * kMiB});
    CHECK(Scene({1024 * kMiB, 1024 * kMiB}).shares(100 * kMiB) == Bytes{50 * kMiB, 50 * kMiB});
    CHECK(Scene({1024 * kMiB, 3072 * kMiB}).shares(100 * kMiB) == Bytes{25 * kMiB, 75 * kMiB});
    CHECK(Scene({0, 1024 * kMiB, 0}).shares(100 * kMiB) == Bytes{0, 100 * kMiB, 0});
    // Parts without a limit: the first one has it.
    CHECK(Scene({0, 0}).shares(100 * kMiB) == Bytes{100 * kMiB, 0});
    for (const uint64_t bytes : {kUnit, 3 * kUnit, 7 * kMiB + kUnit, 0 * kUnit}) {
        const Bytes all = Scene({1000 * kMiB, 1000 * kMiB, 1000 * kMiB}).shares(bytes);
        CHECK(all[0] + all[1] + all[2] == bytes);
    }
    Scene scene({1024 * kMiB});
    CHECK(scene.gpu->share_of(scene.part(5), 100 * kMiB) == 0);  // no part of it
    CHECK(scene.gpu->parts().size() == 1);
    CHECK_FALSE(scene.gpu->is_split());
}

TEST_CASE("parts that are more than their GPU's slice together are held to that, and others are not") {
    for (const auto& [whole, parts, expected] : {std::tuple{2048 * kMiB, 2048 * kMiB, 0 * kMiB},
                                                 {2048 * kMiB, 2049 * kMiB, 2048 * kMiB},
                                                 {2 * kTotal, kTotal, 0 * kMiB},
                                                 {2 * kTotal, kTotal + kMiB, kTotal}}) {
        PhysicalGpu gpu;
        gpu.open({}, kTotal);
        CHECK(gpu.limit_of_all() == 0);
        gpu.split(slice_of(whole), parts, false);
        CHECK(gpu.is_split());
        CHECK(gpu.limit_of_all() == expected);
        CHECK(gpu.whole_slice().limit == std::min(whole, kTotal));
        CHECK(gpu.total() == kTotal);
    }
}

TEST_CASE("what is charged to a GPU is charged to its parts, and what everybody has is NVML's to say") {
    Scene scene({1024 * kMiB, 1024 * kMiB});
    CHECK(scene.gpu->charged() == 0);
    scene.budgets[0].adjust(0, 30 * kMiB);
    scene.budgets[1].adjust(0, 12 * kMiB);
    CHECK(scene.gpu->charged() == 42 * kMiB);
    machine = {};
    machine.all = 700 * kMiB;
    put(NvmlFunction::nvmlInit_v2, init);
    put(NvmlFunction::nvmlDeviceGetHandleByUUID, by_uuid);
    put(NvmlFunction::nvmlDeviceGetMemoryInfo, memory);
    CHECK(scene.gpu->used_by_all() == 700 * kMiB);
    machine.answers = false;
    CHECK(scene.gpu->used_by_all() == 0);
    machine.there = false;
    CHECK(scene.gpu->used_by_all() == 0);
    for (const NvmlFunction function :
         {NvmlFunction::nvmlInit_v2, NvmlFunction::nvmlDeviceGetHandleByUUID, NvmlFunction::nvmlDeviceGetMemoryInfo})
        put(function, static_cast<void (*)()>(nullptr));
}
