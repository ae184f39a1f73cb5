// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory of virtual GPUs: each has pools of its own.
#include "virtual_gpu/split/default_pools.h"

#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr auto kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
constexpr auto kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;
const CUmemoryPool kUntouched = tests::handle<CUmemoryPool>(0xdead), kDrivers = tests::handle<CUmemoryPool>(0xd0);
constexpr CUdeviceptr kAddress = 0x7f0000000000;

CUmemoryPool pool(uintptr_t number) { return tests::handle<CUmemoryPool>(0x5000 + number); }

uintptr_t made = 0;
CUmemPoolProps wished{};
CUresult answer = CUDA_SUCCESS;
std::vector<CUmemoryPool> destroyed;
CUmemoryPool allocated_from = nullptr;
std::vector<CUmemAccessDesc> allowed;
size_t allowed_count = 0;
CUmemLocation asked_of{};
int on_gpu = -1;            // the physical one that an imported pool is on
unsigned driver_asked = 0;  // for a pool of its own choice

CUresult allocate(CUdeviceptr* into, size_t, CUmemoryPool from, CUstream) {
    allocated_from = from;
    *into = kAddress;
    return answer;
}
CUresult drivers_pool(CUmemoryPool* into) {
    driver_asked++;
    if (!into)
        return CUDA_ERROR_INVALID_VALUE;
    *into = kDrivers;
    return CUDA_SUCCESS;
}

struct Scene : SplitScene {
    Scene() {
        answer = CUDA_SUCCESS;
        destroyed.clear(), allowed.clear();
        allocated_from = nullptr;
        driver_asked = 0;
        on_gpu = -1;
        using enum Function;
        driver.put(
            cuMemPoolCreate, +[](CUmemoryPool* into, const CUmemPoolProps* wish) -> CUresult {
                if (!into || !wish)
                    return CUDA_ERROR_INVALID_VALUE;
                wished = *wish;
                *into = pool(++made);
                return answer;
            });
        driver.put(
            cuMemPoolDestroy, +[](CUmemoryPool one) -> CUresult {
                if (answer == CUDA_SUCCESS)
                    destroyed.push_back(one);
                return answer;
            });
        driver.put(
            cuDeviceGetDefaultMemPool, +[](CUmemoryPool* into, CUdevice gpu) -> CUresult {
                return gpu < 0 || gpu > 1 ? CUDA_ERROR_INVALID_DEVICE : drivers_pool(into);
            });
        driver.put(
            cuDeviceGetMemPool, +[](CUmemoryPool* into, CUdevice) -> CUresult { return drivers_pool(into); });
        driver.put(
            cuMemGetDefaultMemPool,
            +[](CUmemoryPool* into, CUmemLocation*, CUmemAllocationType) -> CUresult { return drivers_pool(into); });
        driver.put(
            cuMemGetMemPool,
            +[](CUmemoryPool* into, CUmemLocation*, CUmemAllocationType) -> CUresult { return drivers_pool(into); });
        driver.put(
            cuMemSetMemPool, +[](CUmemLocation*, CUmemAllocationType, CUmemoryPool) -> CUresult {
                driver_asked++;
                return CUDA_SUCCESS;
            });
        driver.put(
            cuMemPoolSetAccess, +[](CUmemoryPool, const CUmemAccessDesc* wishes, size_t count) -> CUresult {
                allowed_count = count;
                if (!wishes)
                    return CUDA_ERROR_INVALID_VALUE;
                allowed.insert(allowed.end(), wishes, wishes + count);
                return answer;
            });
        driver.put(
            cuMemPoolGetAccess, +[](CUmemAccess_flags* flags, CUmemoryPool, CUmemLocation* of) -> CUresult {
                if (!of)
                    return CUDA_ERROR_INVALID_VALUE;
                asked_of = *of;
                *flags = of->id == on_gpu ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
                return CUDA_SUCCESS;
            });
        driver.put(
            cuMemPoolImportFromShareableHandle,
            +[](CUmemoryPool* into, void*, CUmemAllocationHandleType, unsigned long long) -> CUresult {
                *into = pool(++made);
                return answer;
            });
        driver.put(cuMemAllocFromPoolAsync, allocate);
        driver.put(cuMemAllocFromPoolAsync_ptsz, allocate);
    }
    ~Scene() {
        for (const CUdevice gpu : {0, 1})
            forget_pools_of(gpu);
        for (uintptr_t number = 1; number <= made; number++)
            handle_registry().remove(pool(number), HandleKind::pool);
    }
    static CUmemoryPool preset(CUdevice device) {
        CUmemoryPool one = kUntouched;
        CHECK(split_driver::cuDeviceGetDefaultMemPool(&one, device) == CUDA_SUCCESS);
        return one;
    }
    static CUmemoryPool now(CUdevice device) {
        CUmemoryPool one = kUntouched;
        CHECK(split_driver::cuDeviceGetMemPool(&one, device) == CUDA_SUCCESS);
        return one;
    }
    static CUresult create(CUmemoryPool* into, int device, CUmemLocationType type = kDevice) {
        CUmemPoolProps wish{};
        wish.allocType = kPinned;
        wish.location = {type, device};
        const CUresult result = split_driver::cuMemPoolCreate(into, &wish);
        CHECK(wish.location.id == device);
        return result;
    }
    static CUmemoryPool create(int device) {
        CUmemoryPool one = nullptr;
        REQUIRE(create(&one, device) == CUDA_SUCCESS);
        return one;
    }
};

}  // namespace

TEST_CASE("each virtual GPU has a default pool of its own, made once on the physical GPU") {
    Scene scene;
    const CUmemoryPool first = scene.preset(0), second = scene.preset(1);
    CHECK(wished.location.type == kDevice);
    CHECK(wished.location.id == 0);
    CHECK(wished.allocType == kPinned);
    const CUmemoryPool beside = scene.preset(2);
    CHECK(wished.location.id == 1);
    CHECK(first != second);
    CHECK(second != beside);
    CHECK(scene.preset(1) == second);
    CHECK(scene.now(1) == second);
    CHECK(handle_registry().find(second, HandleKind::pool).device == 1);
    CUmemoryPool into = kUntouched;
    CHECK(split_driver::cuDeviceGetDefaultMemPool(&into, 3) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(split_driver::cuDeviceGetMemPool(&into, 3) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(split_driver::cuDeviceSetMemPool(3, second) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(into == kUntouched);
    CHECK(split_driver::cuDeviceGetDefaultMemPool(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuDeviceGetMemPool(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
    // It can't be destroyed, as a driver's can't.
    CHECK(split_driver::cuMemPoolDestroy(second) == CUDA_ERROR_INVALID_VALUE);
    CHECK(destroyed.empty());
}

TEST_CASE("a default pool that can't be made is asked for again") {
    Scene scene;
    answer = CUDA_ERROR_OUT_OF_MEMORY;
    CUmemoryPool into = kUntouched;
    CHECK(split_driver::cuDeviceGetMemPool(&into, 2) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
}

TEST_CASE(
    "a virtual GPU uses the pool that is chosen for it, of its own only, and its default one after the end of that") {
    Scene scene;
    const CUmemoryPool preset = scene.preset(1), own = scene.create(1), others = scene.create(0);
    CHECK(split_driver::cuDeviceSetMemPool(1, others) == CUDA_ERROR_INVALID_VALUE);
    CHECK(split_driver::cuDeviceSetMemPool(1, kUntouched) == CUDA_ERROR_INVALID_VALUE);
    CHECK(scene.now(1) == preset);
    CHECK(split_driver::cuDeviceSetMemPool(1, own) == CUDA_SUCCESS);
    CHECK(scene.now(1) == own);
    CHECK(scene.now(0) == scene.preset(0));
    CHECK(scene.preset(1) == preset);
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(split_driver::cuMemPoolDestroy(own) == CUDA_ERROR_UNKNOWN);
    answer = CUDA_SUCCESS;
    CHECK(scene.now(1) == own);
    CHECK(handle_registry().find(own, HandleKind::pool).device == 1);
    CHECK(split_driver::cuMemPoolDestroy(others) == CUDA_SUCCESS);
    CHECK(scene.now(1) == own);
    CHECK(split_driver::cuMemPoolDestroy(own) == CUDA_SUCCESS);
    CHECK(scene.now(1) == preset);
    CHECK_FALSE(handle_registry().find(own, HandleKind::pool).known);
    CHECK(destroyed == std::vector<CUmemoryPool>{others, own});
    // The default one can be chosen again.
    CHECK(split_driver::cuDeviceSetMemPool(1, preset) == CUDA_SUCCESS);
    CHECK(scene.now(1) == preset);
    CHECK(split_driver::cuMemPoolDestroy(kDrivers) == CUDA_SUCCESS);
    CHECK(destroyed.back() == kDrivers);
}

TEST_CASE("pools are asked for by place as by GPU, and places that are no GPU's are the driver's") {
    Scene scene;
    CUmemLocation gpu{kDevice, 1}, host{CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemoryPool into = nullptr;
    CHECK(split_driver::cuMemGetDefaultMemPool(&into, &gpu, kPinned) == CUDA_SUCCESS);
    CHECK(into == scene.preset(1));
    const CUmemoryPool own = scene.create(1);
    CHECK(split_driver::cuMemSetMemPool(&gpu, kPinned, own) == CUDA_SUCCESS);
    CHECK(split_driver::cuMemGetMemPool(&into, &gpu, kPinned) == CUDA_SUCCESS);
    CHECK(into == own);
    CHECK(driver_asked == 0);
    constexpr auto kManaged = CU_MEM_ALLOCATION_TYPE_MANAGED;
    CHECK(split_driver::cuMemGetDefaultMemPool(&into, &host, kPinned) == CUDA_SUCCESS);
    CHECK(into == kDrivers);
    CHECK(split_driver::cuMemGetMemPool(&into, &gpu, kManaged) == CUDA_SUCCESS);
    CHECK(into == kDrivers);
    CHECK(split_driver::cuMemSetMemPool(&host, kPinned, own) == CUDA_SUCCESS);
    CHECK(split_driver::cuMemSetMemPool(nullptr, kPinned, own) == CUDA_SUCCESS);
    CHECK(driver_asked == 4);
}

TEST_CASE("a pool is made on the physical GPU, or not at all where it can't be noted") {
    Scene scene;
    CUmemoryPool into = kUntouched;
    REQUIRE(scene.create(&into, 2) == CUDA_SUCCESS);
    CHECK(wished.location.id == 1);
    CHECK(handle_registry().find(into, HandleKind::pool).device == 2);
    REQUIRE(scene.create(&into, 0, CU_MEM_LOCATION_TYPE_HOST) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(into, HandleKind::pool).known);
    CHECK(split_driver::cuMemPoolCreate(&into, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(scene.create(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
    into = kUntouched;
    answer = CUDA_ERROR_OUT_OF_MEMORY;  // though it has written something
    CHECK(scene.create(&into, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    answer = CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    // Until the registry would have to grow.
    for (int i = 0; result == CUDA_SUCCESS && i < 10'000; i++) {
        into = kUntouched;
        const NoMemory none;
        result = scene.create(&into, 1);
    }
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    CHECK(destroyed == std::vector<CUmemoryPool>{pool(made)});
}

TEST_CASE("a part of a pool's own GPU is told the access that it was given, and the driver answers for the others") {
    Scene scene;
    const CUmemoryPool own = scene.create(1), other = scene.create(1);
    const auto told = [](CUmemoryPool pool, int part) {
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;
        const CUmemLocation place{kDevice, part};
        CHECK(split_driver::cuMemPoolGetAccess(&flags, pool, const_cast<CUmemLocation*>(&place)) == CUDA_SUCCESS);
        return flags;
    };
    using enum CUmemAccess_flags_enum;
    CHECK(told(own, 0) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    for (const CUmemAccess_flags flags :
         {CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_NONE}) {
        const CUmemAccessDesc wish{{kDevice, 0}, flags};
        CHECK(split_driver::cuMemPoolSetAccess(own, &wish, 1) == CUDA_SUCCESS);
        CHECK(told(own, 0) == flags);
        CHECK(told(other, 0) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    }
    CHECK(told(own, 2) == CU_MEM_ACCESS_FLAGS_PROT_READ);  // as the driver says
    CHECK(told(own, 1) == CU_MEM_ACCESS_FLAGS_PROT_READ);
    const CUmemAccessDesc wish{{kDevice, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(split_driver::cuMemPoolSetAccess(own, &wish, 1) == CUDA_SUCCESS);
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(split_driver::cuMemPoolDestroy(own) == CUDA_ERROR_UNKNOWN);
    answer = CUDA_SUCCESS;
    CHECK(told(own, 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);  // as before
    CHECK(split_driver::cuMemPoolDestroy(own) == CUDA_SUCCESS);
}

TEST_CASE("a part of a pool's own GPU needs no access, and the driver is told of the others one by one") {
    Scene scene;
    const CUmemoryPool own = scene.create(1);
    std::vector<CUmemAccessDesc> wishes(4);
    const CUmemLocation places[] = {{kDevice, 0}, {kDevice, 1}, {kDevice, 2}, {CU_MEM_LOCATION_TYPE_HOST, 0}};
    for (size_t i = 0; i < 4; i++) {
        wishes[i].location = places[i];
        wishes[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    CHECK(split_driver::cuMemPoolSetAccess(own, wishes.data(), wishes.size()) == CUDA_SUCCESS);
    REQUIRE(allowed.size() == 3);
    CHECK(allowed[0].location.id == 0);
    CHECK(allowed[1].location.id == 1);
    CHECK(allowed[2].location.type == CU_MEM_LOCATION_TYPE_HOST);
    CHECK(wishes[2].location.id == 2);
    allowed.clear();
    answer = CUDA_ERROR_INVALID_VALUE;
    CHECK(split_driver::cuMemPoolSetAccess(own, wishes.data(), wishes.size()) == CUDA_ERROR_INVALID_VALUE);
    CHECK(allowed.size() == 1);
    answer = CUDA_SUCCESS;
    CHECK(split_driver::cuMemPoolSetAccess(own, wishes.data(), 0) == CUDA_SUCCESS);
    CHECK(allowed_count == 0);
    CHECK(split_driver::cuMemPoolSetAccess(own, nullptr, 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(allowed_count == 4);
    // A pool that others have made is of no known GPU: the driver is told of every access.
    allowed.clear();
    CHECK(split_driver::cuMemPoolSetAccess(kDrivers, wishes.data(), 1) == CUDA_SUCCESS);
    CHECK(allowed.size() == 1);
    CUmemAccess_flags flags{};
    CUmemLocation place{kDevice, 2};
    CHECK(split_driver::cuMemPoolGetAccess(&flags, kDrivers, &place) == CUDA_SUCCESS);
    CHECK(asked_of.id == 1);
    CHECK(split_driver::cuMemPoolGetAccess(&flags, own, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a pool of another process is the part's that is current on its GPU when it is first used") {
    Scene scene;
    const auto import = [](CUmemoryPool* into) {
        return split_driver::cuMemPoolImportFromShareableHandle(into, nullptr, CU_MEM_HANDLE_TYPE_NONE, 0);
    };
    const auto access = [](CUmemoryPool of, int part) {
        CUmemLocation location{};
        location.type = kDevice;
        location.id = part;
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;
        CHECK(split_driver::cuMemPoolGetAccess(&flags, of, &location) == CUDA_SUCCESS);
        return flags;
    };
    CUmemoryPool pools[3] = {kUntouched, kUntouched, kUntouched};
    on_gpu = 0;
    CHECK(import(&pools[0]) == CUDA_SUCCESS);  // no context is current
    CHECK(handle_registry().find(pools[0], HandleKind::pool).is_unclaimed());
    CHECK(access(pools[0], 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(handle_registry().find(pools[0], HandleKind::pool).is_unclaimed());
    on_gpu = 1;
    CHECK(import(&pools[1]) == CUDA_SUCCESS);
    scene.SplitScene::create(1);
    CHECK(handle_registry().find(pools[0], HandleKind::pool).is_unclaimed());
    on_gpu = 0;
    CHECK(access(pools[0], 0) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CHECK(access(pools[0], 1) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(handle_registry().find(pools[0], HandleKind::pool).device == 1);
    CHECK(import(&pools[2]) == CUDA_SUCCESS);
    CHECK(handle_registry().find(pools[2], HandleKind::pool).device == 1);
    scene.SplitScene::create(0);
    CHECK(access(pools[0], 1) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);  // who has claimed it keeps it
    CHECK(access(pools[0], 0) == CU_MEM_ACCESS_FLAGS_PROT_NONE);

    on_gpu = 1;  // whatever is current on another GPU, and has access to it since
    access(pools[1], 0);
    CHECK(handle_registry().find(pools[1], HandleKind::pool).is_unclaimed());
    CHECK(split_driver::cuMemPoolDestroy(pools[1]) == CUDA_SUCCESS);
    CHECK_FALSE(handle_registry().find(pools[1], HandleKind::pool).known);

    answer = CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool into = kUntouched;
    CHECK(import(&into) == CUDA_ERROR_INVALID_VALUE);
    CHECK(into == kUntouched);
}

TEST_CASE("memory is taken from the pool of the stream's GPU, and of the current one for a default stream") {
    Scene scene;
    for (const auto allocates : {split_driver::cuMemAllocAsync, split_driver::cuMemAllocAsync_ptsz}) {
        CUdeviceptr address = 0;
        MadeUpDriver::stack().clear();
        CHECK(allocates(&address, 1, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
        CHECK(address == 0);
        scene.SplitScene::create(1);
        CHECK(allocates(&address, 1, nullptr) == CUDA_SUCCESS);
        CHECK(address == kAddress);
        CHECK(allocated_from == scene.preset(1));
        REQUIRE(handle_registry().add(stream(500), HandleKind::stream, 2, 0));
        CHECK(allocates(&address, 1, stream(500)) == CUDA_SUCCESS);
        CHECK(allocated_from == scene.preset(2));
        handle_registry().remove(stream(500), HandleKind::stream);
        CHECK(allocates(nullptr, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
        answer = CUDA_ERROR_OUT_OF_MEMORY;
        CHECK(allocates(&address, 1, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
        answer = CUDA_SUCCESS;
    }
}

TEST_CASE("a physical GPU's pools end with its last context or its reset, and another's stay") {
    Scene scene;
    CUcontext context = nullptr;
    const auto again = [&](CUdevice device, CUmemoryPool before) {
        CHECK_FALSE(handle_registry().find(before, HandleKind::pool).known);
        CHECK(scene.preset(device) != before);
        return scene.preset(device);
    };
    const CUmemoryPool beside = scene.preset(2);
    CUmemoryPool first = scene.preset(0), second = scene.preset(1);
    const CUmemoryPool own = scene.create(1);
    REQUIRE(split_driver::cuDeviceSetMemPool(1, own) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    CHECK(LeftMemory());
    CHECK(scene.preset(0) == first);
    REQUIRE(split_driver::cuDevicePrimaryCtxRelease_v2(1) == CUDA_SUCCESS);
    first = again(0, first);
    second = again(1, second);
    CHECK(scene.now(1) == second);
    REQUIRE(split_driver::cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS);
    REQUIRE(split_driver::cuDevicePrimaryCtxReset_v2(1) == CUDA_SUCCESS);
    again(0, first);
    again(1, second);
    CHECK(scene.preset(2) == beside);
    // As long as somebody else uses the real context they stay.
    first = scene.preset(0);
    SplitScene::uses[0] = 1;
    forget_pools_if_ended(0);
    CHECK(scene.preset(0) == first);
    SplitScene::uses[0] = 0;
    forget_pools_if_ended(0);
    again(0, first);
}
