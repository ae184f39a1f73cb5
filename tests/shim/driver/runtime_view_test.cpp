// SPDX-License-Identifier: Apache-2.0
// The GPUs that NVIDIA's runtime sees where GPUs are split: the physical ones, each with the memory of the partition
// that the calling thread is on.
#include "shim/driver/runtime_view.h"

#include "tests/catch.h"
#include "tests/shim/within.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/physical.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// GPU 0 as it is, and two parts of GPU 1: the virtual GPUs 1 and 2.
const Variables kSplit = {{"CUSLICE_SPLIT", "1=2"}, {"CUSLICE_LIMIT", ""}};
constexpr CUdevice kPhysical = 1, kPart = 2;

#define SEEN(symbol)                        \
    (reinterpret_cast<decltype(&::symbol)>( \
        runtime_form(physical_slot(Function::symbol), reinterpret_cast<void*>(&::symbol))))

CUmemAllocationProp on(CUdevice device) {
    CUmemAllocationProp wish{};
    wish.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return wish;
}

}  // namespace

TEST_CASE("a runtime is told the physical GPU and its context of what a part has allocated") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    const CUcontext context = Within::use(kPart);
    const CUdeviceptr block = Within::allocate(1 << 20);
    int ordinal = -1, as_the_program_counts = -1;
    REQUIRE(cuPointerGetAttribute(&as_the_program_counts, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block) == CUDA_SUCCESS);
    CHECK(as_the_program_counts == kPart);
    CHECK(SEEN(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block) == CUDA_SUCCESS);
    CHECK(ordinal == kPhysical);
    CUcontext real = nullptr, seen = nullptr;
    REQUIRE(CUSLICE_PHYSICAL(cuCtxGetCurrent)(&real) == CUDA_SUCCESS);
    CHECK(real != context);
    CHECK(SEEN(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_CONTEXT, block) == CUDA_SUCCESS);
    CHECK(seen == real);
    CUmemorytype type{};
    CHECK(SEEN(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block) == CUDA_SUCCESS);
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CHECK(SEEN(cuPointerGetAttribute)(nullptr, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block) != CUDA_SUCCESS);
    ordinal = -7;
    CHECK(SEEN(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 0x1000) != CUDA_SUCCESS);

    // The same of several at once, where what is unknown is told as nothing.
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_CONTEXT};
    void* data[] = {&type, &ordinal, &seen};
    seen = nullptr;
    CHECK(SEEN(cuPointerGetAttributes)(3, attributes, data, block) == CUDA_SUCCESS);
    CHECK(ordinal == kPhysical);
    CHECK(seen == real);
    CHECK(SEEN(cuPointerGetAttributes)(3, attributes, data, 0x1000) == CUDA_SUCCESS);
    CHECK(ordinal < 0);
    CHECK(seen == nullptr);
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
}

TEST_CASE("what a runtime creates on a physical GPU is its thread's part's to pay for") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    Within::use(kPart);
    const uint64_t before = Within::used(kPart), other = Within::used(1);
    CUmemGenericAllocationHandle made = 0;
    CUmemAllocationProp wish = on(kPhysical);
    REQUIRE(SEEN(cuMemCreate)(&made, 64 << 20, &wish, 0) == CUDA_SUCCESS);
    CHECK(wish.location.id == kPhysical);
    CHECK(Within::used(kPart) == before + (64 << 20));
    CHECK(Within::used(1) == other);
    CHECK(cuMemRelease(made) == CUDA_SUCCESS);
    // On the other physical GPU, which is one virtual GPU and has no limit.
    wish = on(0);
    REQUIRE(SEEN(cuMemCreate)(&made, 64 << 20, &wish, 0) == CUDA_SUCCESS);
    CHECK(Within::used(kPart) == before);
    CHECK(cuMemRelease(made) == CUDA_SUCCESS);
    // A GPU that isn't there and null properties are refused.
    wish = on(kPart);
    CHECK(SEEN(cuMemCreate)(&made, 64 << 20, &wish, 0) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(SEEN(cuMemCreate)(&made, 64 << 20, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);

    CUmemoryPool pool = nullptr;
    CUmemPoolProps pools{};
    pools.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pools.location = {CU_MEM_LOCATION_TYPE_DEVICE, kPhysical};
    CHECK(SEEN(cuMemPoolCreate)(&pool, &pools) == CUDA_SUCCESS);
    CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    pools.location.id = kPart;
    CHECK(SEEN(cuMemPoolCreate)(&pool, &pools) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(SEEN(cuMemPoolCreate)(&pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the pool that a runtime sets for a physical GPU is that of its thread's part") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    Within::use(kPart);
    CUmemoryPool default_pool = nullptr, pool = nullptr, made = nullptr;
    REQUIRE(SEEN(cuDeviceGetDefaultMemPool)(&default_pool, kPhysical) == CUDA_SUCCESS);
    CHECK(default_pool != nullptr);
    CHECK(SEEN(cuDeviceGetMemPool)(&pool, kPhysical) == CUDA_SUCCESS);
    CHECK(pool == default_pool);
    CUmemPoolProps wish{};
    wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = {CU_MEM_LOCATION_TYPE_DEVICE, kPhysical};
    REQUIRE(SEEN(cuMemPoolCreate)(&made, &wish) == CUDA_SUCCESS);
    CHECK(SEEN(cuDeviceSetMemPool)(kPhysical, made) == CUDA_SUCCESS);
    CHECK(SEEN(cuDeviceGetMemPool)(&pool, kPhysical) == CUDA_SUCCESS);
    CHECK(pool == made);
    CHECK(SEEN(cuDeviceGetDefaultMemPool)(&pool, kPhysical) == CUDA_SUCCESS);
    CHECK(pool == default_pool);
    // As the program counts.
    CHECK(cuDeviceGetMemPool(&pool, kPart) == CUDA_SUCCESS);
    CHECK(pool == made);
    CHECK(SEEN(cuDeviceSetMemPool)(kPhysical, default_pool) == CUDA_SUCCESS);
    CHECK(cuMemPoolDestroy(made) == CUDA_SUCCESS);
    // A GPU that isn't there is refused, by each.
    CHECK(SEEN(cuDeviceGetDefaultMemPool)(&pool, 7) != CUDA_SUCCESS);
    CHECK(SEEN(cuDeviceGetMemPool)(&pool, 7) != CUDA_SUCCESS);
    CHECK(SEEN(cuDeviceSetMemPool)(7, default_pool) != CUDA_SUCCESS);
}

TEST_CASE("a runtime's uses of a physical GPU's context are given up on the parts that they were of") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    const CUcontext first = Within::use(1), second = Within::use(kPart);
    CHECK(first != second);
    CUcontext real = nullptr, context = nullptr;
    REQUIRE(CUSLICE_PHYSICAL(cuCtxGetCurrent)(&real) == CUDA_SUCCESS);
    const auto retained = [](CUdevice part) { return process().gpu(part).primary().retains.load(); };
    const unsigned of_first = retained(1), of_second = retained(kPart);
    REQUIRE(SEEN(cuDevicePrimaryCtxRetain)(&context, kPhysical) == CUDA_SUCCESS);
    CHECK(context == real);
    CHECK(retained(1) == of_first);
    CHECK(retained(kPart) == of_second + 1);
    // The thread has gone on to the other part meanwhile.
    REQUIRE(cuCtxSetCurrent(first) == CUDA_SUCCESS);
    CHECK(SEEN(cuDevicePrimaryCtxRelease_v2)(kPhysical) == CUDA_SUCCESS);
    CHECK(retained(1) == of_first);
    CHECK(retained(kPart) == of_second);
    CHECK(SEEN(cuDevicePrimaryCtxRetain)(&context, 7) != CUDA_SUCCESS);
}

TEST_CASE("a runtime sees a part's memory, and streams are made where the thread is") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    Within::use(kPart);
    size_t as_seen = 0, of_part = 0, whole = 0;
    REQUIRE(cuDeviceTotalMem_v2(&of_part, kPart) == CUDA_SUCCESS);
    REQUIRE(CUSLICE_PHYSICAL(cuDeviceTotalMem_v2)(&whole, kPhysical) == CUDA_SUCCESS);
    CHECK(SEEN(cuDeviceTotalMem_v2)(&as_seen, kPhysical) == CUDA_SUCCESS);
    CHECK(as_seen == of_part);
    CHECK(as_seen < whole);
    // The hook itself, as for everybody.
    CHECK(SEEN(cuStreamCreate) == &::cuStreamCreate);
    CHECK(SEEN(cuMemAlloc_v2) == &::cuMemAlloc_v2);
    CHECK(runtime_form(&whole, &of_part) == &of_part);
    // GPUs as the driver counts them, where nothing is counted.
    void* const ours = filled_driver_slot(static_cast<size_t>(Function::cuDeviceGetCount));
    void* const theirs = physical_slot(Function::cuDeviceGetCount);
    CHECK(ours != theirs);
    CHECK(runtime_form(theirs, ours) == theirs);
}

TEST_CASE("a runtime is told no time between events of two parts of a GPU") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    // As the hook map finds them: none of these is a hook.
    const auto form = [](Function function) {
        return runtime_form(physical_slot(function), filled_driver_slot(static_cast<size_t>(function)));
    };
    const auto create = reinterpret_cast<decltype(&::cuEventCreate)>(form(Function::cuEventCreate));
    const auto destroy = reinterpret_cast<decltype(&::cuEventDestroy_v2)>(form(Function::cuEventDestroy_v2));
    CUevent events[4] = {};
    for (int i = 0; i < 4; i++) {
        Within::use(kPhysical + i / 2);
        CHECK(create(&events[i], CU_EVENT_DEFAULT) == CUDA_SUCCESS);
        CHECK(cuEventRecord(events[i], nullptr) == CUDA_SUCCESS);
        CHECK(cuEventSynchronize(events[i]) == CUDA_SUCCESS);
    }
    for (const Function function : {Function::cuEventElapsedTime, Function::cuEventElapsedTime_v2}) {
        const auto elapsed = reinterpret_cast<decltype(&::cuEventElapsedTime)>(form(function));
        float milliseconds = -1;
        CHECK(elapsed(&milliseconds, events[0], events[2]) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(milliseconds == -1);
        CHECK(elapsed(&milliseconds, events[0], events[1]) == CUDA_SUCCESS);
        CHECK(elapsed(&milliseconds, events[2], events[3]) == CUDA_SUCCESS);
    }
    for (const CUevent event : events)
        CHECK(destroy(event) == CUDA_SUCCESS);
}

TEST_CASE("a program that carries its runtime is told once how to relink it") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    Within::said();
    for (int i = 0; i < 2; i++)
        CHECK(is_runtime(reinterpret_cast<const void*>(&runtime_form), "", 0));
    const std::vector<std::string> said = Within::said();
    REQUIRE(said.size() == 1);
    CHECK(said[0].starts_with("the CUDA runtime in "));
    CHECK(said[0].ends_with(
        " sees each split GPU as one, with the memory of its first partition, as it is not the shared one "
        "of CUDA 11, 12 or 13. Start the program with cuslice run "
        "--redirect-runtime=program, or relink it with nvcc -cudart shared: "
        "NVCC_APPEND_FLAGS=\"-cudart shared\" make"));
}

TEST_CASE("a module is a runtime once it has asked as only one does") {
    const Within within(kSplit, "2xt4");
    if (!within)
        return;
    const void* here = reinterpret_cast<const void*>(&runtime_form);
    CHECK_FALSE(is_runtime(here, "cuMemAlloc", 12000));
    CHECK_FALSE(is_runtime(here, "", 12000));
    CHECK_FALSE(is_runtime(here, "cuGetProcAddress", 0));
    CHECK_FALSE(is_runtime(here, nullptr, 0));
    CHECK_FALSE(is_runtime(nullptr, "", 0));
    CHECK(is_runtime(here, "", 0));
    CHECK(is_runtime(here, "cuMemAlloc", 12000));
    CHECK_FALSE(is_runtime(physical_slot(Function::cuInit), "cuMemAlloc", 12000));
}
