// SPDX-License-Identifier: Apache-2.0
// Where managed memory is to be: the driver is told physical GPUs, and the host as it is.
#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr auto kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
constexpr CUdeviceptr kAddress = 0x7f0000000000;

int told = -9;
std::vector<CUmemLocation> all_told;
unsigned calls = 0;

CUresult take(CUmemLocation place) {
    calls++;
    told = place.id;
    return CUDA_SUCCESS;
}
CUresult prefetch(CUdeviceptr address, size_t bytes, CUdevice gpu, CUstream on) {
    CHECK(address == kAddress);
    CHECK(bytes == 4096);
    CHECK(on == stream(3));
    return take({kDevice, gpu});
}
CUresult prefetch_at(CUdeviceptr address, size_t bytes, CUmemLocation place, unsigned flags, CUstream on) {
    CHECK(address == kAddress);
    CHECK(bytes == 4096);
    CHECK(flags == 5);
    CHECK(on == stream(3));
    return take(place);
}
CUresult batch(CUdeviceptr*, size_t*, size_t count, CUmemLocation* places, size_t*, size_t number,
               unsigned long long flags, CUstream on) {
    calls++;
    CHECK(count == 7);
    CHECK(flags == 5);
    CHECK(on == stream(3));
    all_told.assign(places, places + number);
    return CUDA_SUCCESS;
}

struct Scene : SplitScene {
    Scene() {
        calls = 0;
        using enum Function;
        driver.put(
            cuMemAdvise, +[](CUdeviceptr, size_t, CUmem_advise, CUdevice gpu) -> CUresult {
                return take({kDevice, gpu});
            });
        driver.put(
            cuMemAdvise_v2,
            +[](CUdeviceptr, size_t, CUmem_advise, CUmemLocation place) -> CUresult { return take(place); });
        driver.put(cuMemPrefetchAsync, prefetch);
        driver.put(cuMemPrefetchAsync_ptsz, prefetch);
        driver.put(cuMemPrefetchAsync_v2, prefetch_at);
        driver.put(cuMemPrefetchAsync_v2_ptsz, prefetch_at);
        driver.put(cuMemPrefetchBatchAsync, batch);
        driver.put(cuMemPrefetchBatchAsync_ptsz, batch);
        driver.put(cuMemDiscardAndPrefetchBatchAsync, batch);
        driver.put(cuMemDiscardAndPrefetchBatchAsync_ptsz, batch);
    }
};

template <typename Call>
void check_devices(Call call) {
    for (const auto& [device, physical] : {std::pair{0, 0}, {1, 0}, {2, 1}, {3, CU_DEVICE_INVALID}}) {
        CAPTURE(device);
        told = -9;
        CHECK(call(CUmemLocation{kDevice, device}) == CUDA_SUCCESS);
        CHECK(told == physical);
    }
}

}  // namespace

TEST_CASE("advice and prefetches are for the physical GPU, and the host stays the host") {
    Scene scene;
    namespace split = split_driver;
    constexpr auto kAdvice = CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    const auto with_ordinal = [](auto call) {
        check_devices([&](CUmemLocation place) { return call(place.id); });
        CHECK(call(CU_DEVICE_CPU) == CUDA_SUCCESS);
        CHECK(told == CU_DEVICE_CPU);
    };
    const auto with_place = [](auto call) {
        check_devices(call);
        CHECK(call(CUmemLocation{CU_MEM_LOCATION_TYPE_HOST_NUMA, 2}) == CUDA_SUCCESS);
        CHECK(told == 2);
    };
    with_ordinal([](CUdevice gpu) { return split::cuMemAdvise(kAddress, 4096, kAdvice, gpu); });
    with_ordinal([](CUdevice gpu) { return split::cuMemPrefetchAsync(kAddress, 4096, gpu, stream(3)); });
    with_ordinal([](CUdevice gpu) { return split::cuMemPrefetchAsync_ptsz(kAddress, 4096, gpu, stream(3)); });
    with_place([](CUmemLocation place) { return split::cuMemAdvise_v2(kAddress, 4096, kAdvice, place); });
    with_place([](CUmemLocation place) { return split::cuMemPrefetchAsync_v2(kAddress, 4096, place, 5, stream(3)); });
    with_place(
        [](CUmemLocation place) { return split::cuMemPrefetchAsync_v2_ptsz(kAddress, 4096, place, 5, stream(3)); });
}

TEST_CASE("a batch of prefetches names physical GPUs, and the program's places are as they were") {
    Scene scene;
    std::vector<CUmemLocation> places{{kDevice, 1}, {CU_MEM_LOCATION_TYPE_HOST, 0}, {kDevice, 2}};
    for (const auto call :
         {split_driver::cuMemPrefetchBatchAsync, split_driver::cuMemPrefetchBatchAsync_ptsz,
          split_driver::cuMemDiscardAndPrefetchBatchAsync, split_driver::cuMemDiscardAndPrefetchBatchAsync_ptsz}) {
        const auto prefetch_all = [&] {
            return call(nullptr, nullptr, 7, places.data(), nullptr, places.size(), 5, stream(3));
        };
        REQUIRE(prefetch_all() == CUDA_SUCCESS);
        REQUIRE(all_told.size() == 3);
        CHECK(all_told[0].id == 0);
        CHECK(all_told[1].type == CU_MEM_LOCATION_TYPE_HOST);
        CHECK(all_told[2].id == 1);
        CHECK(places[2].id == 2);
        calls = 0;
        const NoMemory none;
        CHECK(prefetch_all() == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(calls == 0);
    }
}
