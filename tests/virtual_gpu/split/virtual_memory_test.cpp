// SPDX-License-Identifier: Apache-2.0
// Physical memory of virtual GPUs, and who may reach it.
#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

using Handle = CUmemGenericAllocationHandle;
constexpr auto kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
constexpr auto kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE, kRead = CU_MEM_ACCESS_FLAGS_PROT_READ,
               kWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
constexpr Handle kUntouched = 0xdead;
constexpr size_t kPage = 2 << 20;

const void* as_handle(Handle handle) { return reinterpret_cast<const void*>(handle); }

/// Memory that the driver has, its last request, and its answer.
Handle made = 0;
std::map<Handle, int> references;
CUmemLocation location{};
std::vector<CUmemAccessDesc> given;
std::map<CUdeviceptr, unsigned long long> reached;  // by page
size_t given_count = 0;
CUresult answer = CUDA_SUCCESS;
unsigned asked = 0;

struct Scene : SplitScene {
    Scene() {
        made = 0x500000;
        references.clear();
        reached.clear();
        answer = CUDA_SUCCESS;
        asked = 0;
        driver.put(
            Function::cuMemCreate,
            +[](Handle* into, size_t, const CUmemAllocationProp* wish, unsigned long long) -> CUresult {
                asked++;
                if (!into || !wish)
                    return CUDA_ERROR_INVALID_VALUE;
                location = wish->location;
                *into = ++made;
                if (answer == CUDA_SUCCESS)
                    references[made] = 1;
                return answer;
            });
        driver.put(
            Function::cuMemRelease, +[](Handle handle) -> CUresult {
                if (answer != CUDA_SUCCESS)
                    return answer;
                if (--references[handle] == 0)
                    references.erase(handle);
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuMemGetAllocationPropertiesFromHandle,
            +[](CUmemAllocationProp* properties, Handle handle) -> CUresult {
                if (!references.count(handle))
                    return CUDA_ERROR_INVALID_VALUE;
                properties->location = location;
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuMemSetAccess,
            +[](CUdeviceptr, size_t, const CUmemAccessDesc* wishes, size_t count) -> CUresult {
                asked++;
                given_count = count;
                given.clear();
                if (!wishes)
                    return CUDA_ERROR_INVALID_VALUE;
                given.assign(wishes, wishes + count);
                return answer;
            });
        driver.put(
            Function::cuMemGetAccess,
            +[](unsigned long long* flags, const CUmemLocation* of, CUdeviceptr address) -> CUresult {
                if (!of)
                    return CUDA_ERROR_INVALID_VALUE;
                location = *of;
                if (!reached.count(address))
                    return CUDA_ERROR_INVALID_VALUE;
                *flags = reached[address];
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuMemMapArrayAsync, +[](CUarrayMapInfo* tiles, unsigned count, CUstream) -> CUresult {
                asked++;
                for (unsigned i = 0; i < count; i++)
                    masks.push_back(tiles[i].deviceBitMask);
                return answer;
            });
        masks.clear();
    }
    ~Scene() {
        for (Handle handle = 0x500000; handle <= made; handle++)
            handle_registry().remove(as_handle(handle), HandleKind::physical_memory);
    }
    static CUresult create(Handle* into, int device, CUmemLocationType type = kDevice) {
        CUmemAllocationProp wish{};
        wish.location = {type, device};
        const CUresult result = split_driver::cuMemCreate(into, kPage, &wish, 0);
        CHECK(wish.location.id == device);
        return result;
    }
    static HandleOwner owner(Handle handle) {
        return handle_registry().find(as_handle(handle), HandleKind::physical_memory);
    }
    static int shown(Handle handle) {
        CUmemAllocationProp properties{};
        if (split_driver::cuMemGetAllocationPropertiesFromHandle(&properties, handle) != CUDA_SUCCESS)
            return -1;
        return properties.location.id;
    }
    static inline std::vector<unsigned> masks;
};

CUmemAccessDesc wish(int device, CUmemAccess_flags flags, CUmemLocationType type = kDevice) {
    CUmemAccessDesc one{};
    one.location = {type, device};
    one.flags = flags;
    return one;
}

}  // namespace

TEST_CASE("physical memory is made on the physical GPU, and shown on the virtual one") {
    Scene scene;
    Handle part = 0, whole = 0, host = 0;
    REQUIRE(scene.create(&part, 1) == CUDA_SUCCESS);
    CHECK(location.id == 0);
    CHECK(scene.shown(part) == 1);
    REQUIRE(scene.create(&whole, 2) == CUDA_SUCCESS);
    CHECK(location.id == 1);
    CHECK(scene.shown(whole) == 2);
    REQUIRE(scene.create(&host, 3, CU_MEM_LOCATION_TYPE_HOST_NUMA) == CUDA_SUCCESS);
    CHECK(location.id == 3);
    CHECK(scene.shown(host) == 3);
    CHECK_FALSE(scene.owner(host).known);
    CHECK(scene.shown(kUntouched) == -1);
    CHECK(split_driver::cuMemCreate(&host, kPage, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(scene.create(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("physical memory is its virtual GPU's until its last handle is released, and after a refused release") {
    Scene scene;
    Handle handle = 0;
    REQUIRE(scene.create(&handle, 1) == CUDA_SUCCESS);
    references[handle] = 2;
    CHECK(split_driver::cuMemRelease(handle) == CUDA_SUCCESS);
    CHECK(scene.owner(handle).known);
    CHECK(scene.owner(handle).device == 1);
    answer = CUDA_ERROR_UNKNOWN;
    CHECK(split_driver::cuMemRelease(handle) == CUDA_ERROR_UNKNOWN);
    CHECK(scene.owner(handle).known);
    // Also where the driver knows nothing of it any more.
    const int count = references[handle];
    references.erase(handle);
    CHECK(split_driver::cuMemRelease(handle) == CUDA_ERROR_UNKNOWN);
    CHECK(scene.owner(handle).known);
    references[handle] = count;
    answer = CUDA_SUCCESS;
    CHECK(split_driver::cuMemRelease(handle) == CUDA_SUCCESS);
    CHECK_FALSE(scene.owner(handle).known);
}

TEST_CASE("physical memory that the driver refuses, or that there is no memory to note, is not made") {
    Scene scene;
    Handle into = kUntouched;
    answer = CUDA_ERROR_OUT_OF_MEMORY;  // though it has written something
    CHECK(scene.create(&into, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    CHECK_FALSE(scene.owner(made).known);
    answer = CUDA_SUCCESS;
    REQUIRE(scene.create(&into, 1) == CUDA_SUCCESS);  // the registry has its first memory
    CUresult result = CUDA_SUCCESS;
    // Until it would have to grow.
    for (int i = 0; result == CUDA_SUCCESS && i < 10'000; i++) {
        into = kUntouched;
        const NoMemory none;
        result = scene.create(&into, 1);
    }
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    CHECK_FALSE(references.count(made));
    CHECK(references.count(made - 1));
    CHECK_FALSE(scene.owner(made).known);
    CHECK(scene.create(&into, 1) == CUDA_SUCCESS);
    CHECK(into == made);
}

TEST_CASE("access is set for physical GPUs, and what another part had there already is kept") {
    Scene scene;
    const CUdeviceptr at = 0x7f0000000000;
    const auto set = [&](CUmemAccess_flags part, size_t pages) {
        const std::vector<CUmemAccessDesc> wishes{wish(1, part), wish(2, kRead)};
        CHECK(split_driver::cuMemSetAccess(at, pages * kPage, wishes.data(), wishes.size()) == CUDA_SUCCESS);
        CHECK(wishes[0].flags == part);
        REQUIRE(given.size() == 2);
        CHECK(given_count == 2);
        CHECK(given[0].location.id == 0);
        CHECK(given[1].location.id == 1);
        CHECK(given[1].flags == kRead);
        return given[0].flags;
    };
    CHECK(set(kRead, 1) == kRead);  // nothing is mapped there yet
    reached = {{at, kNone}, {at + kPage, kRead}, {at + 2 * kPage, kWrite}};
    CHECK(set(kNone, 1) == kNone);
    CHECK(set(kRead, 1) == kRead);
    CHECK(set(kNone, 2) == kRead);
    CHECK(set(kNone, 3) == kWrite);
    CHECK(set(kWrite, 1) == kWrite);
    // A GPU that is whole is given what it asks for.
    const CUmemAccessDesc less = wish(2, kNone);
    CHECK(split_driver::cuMemSetAccess(at, 3 * kPage, &less, 1) == CUDA_SUCCESS);
    CHECK(given.at(0).flags == kNone);
    const CUmemAccessDesc host = wish(0, kNone, CU_MEM_LOCATION_TYPE_HOST);
    CHECK(split_driver::cuMemSetAccess(at, 3 * kPage, &host, 1) == CUDA_SUCCESS);
    CHECK(given.at(0).flags == kNone);
    CHECK(split_driver::cuMemSetAccess(at, kPage, nullptr, 5) == CUDA_ERROR_INVALID_VALUE);
    CHECK(given_count == 5);
}

TEST_CASE("access that there is no memory to translate is refused, and the driver isn't asked") {
    Scene scene;
    const CUmemAccessDesc one = wish(1, kRead);
    CUarrayMapInfo tiles{};
    const NoMemory none;
    CHECK(split_driver::cuMemSetAccess(0x1000, kPage, &one, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(split_driver::cuMemMapArrayAsync(&tiles, 1, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(asked == 0);
}

TEST_CASE("access is asked of the physical GPU") {
    Scene scene;
    reached[0x1000] = kRead;
    unsigned long long flags = 0;
    const CUmemLocation of{kDevice, 2};
    CHECK(split_driver::cuMemGetAccess(&flags, &of, 0x1000) == CUDA_SUCCESS);
    CHECK(location.id == 1);
    CHECK(flags == kRead);
    CHECK(split_driver::cuMemGetAccess(&flags, nullptr, 0x1000) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an array's tiles are bound for physical GPUs, and for none instead of one that isn't there") {
    Scene scene;
    CUarrayMapInfo tiles[5]{};
    const unsigned wished[5] = {1u, 2u, 3u | 4u, 4u, 8u};
    for (int i = 0; i < 5; i++)
        tiles[i].deviceBitMask = wished[i];
    CHECK(split_driver::cuMemMapArrayAsync(tiles, 5, nullptr) == CUDA_SUCCESS);
    CHECK(scene.masks == std::vector<unsigned>{1u, 1u, 3u, 2u, 1u << 31});
    for (int i = 0; i < 5; i++)
        CHECK(tiles[i].deviceBitMask == wished[i]);
}
