// SPDX-License-Identifier: Apache-2.0
// From reserved bytes to an allocation and back: what each of the three steps leaves behind if it fails.
#include "virtual_gpu/gpu/charged_allocation.h"

#include <string>

#include "tests/catch.h"

using namespace cuslice;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr CUdeviceptr kAddress = 0x7f0000000000;

struct Steps {
    CUresult driver = CUDA_SUCCESS, recorded = CUDA_SUCCESS;
    std::string done;
    Budget budget;

    CUresult allocate() {
        REQUIRE(budget.reserve(kMiB));
        Reservation reservation(budget, kMiB);
        return charged_allocation(
            reservation, [&] { return done += "driver ", driver; }, [&] { return done += "record ", recorded; },
            [&] { done += "undo "; });
    }
};

}  // namespace

TEST_CASE("an allocation that the driver makes and that is recorded stays charged") {
    Steps steps;
    CHECK(steps.allocate() == CUDA_SUCCESS);
    CHECK(steps.done == "driver record ");
    CHECK(steps.budget.used() == kMiB);
    CHECK(steps.budget.settled(steps.budget.snapshot()));
}

TEST_CASE("what the driver refuses is not recorded, not undone, and not charged") {
    Steps steps;
    steps.driver = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(steps.allocate() == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(steps.done == "driver ");
    CHECK(steps.budget.used() == 0);
    CHECK(steps.budget.settled(steps.budget.snapshot()));
}

TEST_CASE("what can't be recorded is given back to the driver, and not charged") {
    Steps steps;
    steps.recorded = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(steps.allocate() == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(steps.done == "driver record undo ");
    CHECK(steps.budget.used() == 0);
    CHECK(steps.budget.settled(steps.budget.snapshot()));
}

TEST_CASE("a free that the driver refuses keeps the record, and one that it carries out takes it") {
    GpuState& state = gpu_state();
    const Allocation made{kAddress, kMiB, 1, 0, static_cast<uint8_t>(Kind::memory)};
    REQUIRE(state.allocations.insert(made));
    Allocation seen{1, 1, 1, 1, 1};
    CUresult told = CUDA_SUCCESS;
    const auto release = [&](CUresult result, const Allocation& freed) {
        CHECK_FALSE(state.frees.settled(state.frees.snapshot()));  // the budgets don't show it yet
        told = result;
        seen = freed;
    };
    CHECK(charged_free(
              kAddress, [] { return CUDA_ERROR_ILLEGAL_ADDRESS; }, release) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(told == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(seen.address == 0);
    CHECK(state.allocations.find(kAddress).bytes == kMiB);
    CHECK(state.frees.settled(state.frees.snapshot()));
    CHECK(charged_free(
              kAddress, [] { return CUDA_SUCCESS; }, release) == CUDA_SUCCESS);
    CHECK(seen.address == kAddress);
    CHECK(seen.bytes == kMiB);
    CHECK(state.allocations.find(kAddress).address == 0);
    CHECK(charged_free(
              kAddress, [] { return CUDA_SUCCESS; }, release) == CUDA_SUCCESS);
    CHECK(seen.address == 0);  // nobody's
    CHECK(state.frees.settled(state.frees.snapshot()));
}
