// SPDX-License-Identifier: Apache-2.0
// Owners of pointers: the driver's answers about physical GPUs, translated for the program.
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr CUdeviceptr kAddress = 0x7f0000001000, kBase = 0x7f0000000000;
const CUmemoryPool kPool = tests::handle<CUmemoryPool>(0x51);
constexpr CUmemGenericAllocationHandle kPhysical = 0x610;

/// The driver's answers about the address.
int ordinal = 0;
CUcontext context_said = nullptr;
bool has_base = true, is_pool = false, is_physical = false, answers = true;
int held = 0;
unsigned questions = 0;
CUmemLocationType type = CU_MEM_LOCATION_TYPE_DEVICE;
/// The owner on record for the address; -1: none.
int written_gpu = -1;
CUcontext written_context = nullptr;

CUresult attribute_of(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    questions++;
    CHECK(address == kAddress);
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(data) = kBase;
            return has_base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *static_cast<CUmemoryPool*>(data) = is_pool ? kPool : nullptr;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *static_cast<int*>(data) = ordinal;
            break;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *static_cast<CUcontext*>(data) = context_said;
            break;
        default:
            *static_cast<int*>(data) = 55;
    }
    return answers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult range_of(void* data, size_t size, CUmem_range_attribute attribute) {
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE ||
        attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE)
        return *static_cast<CUmemLocationType*>(data) = type, CUDA_SUCCESS;
    for (size_t i = 0; i < size / sizeof(int); i++)
        static_cast<int*>(data)[i] = i == 0 ? 1 : i == 1 ? 0 : -2;
    return answers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct Scene : SplitScene {
    Scene() {
        ordinal = 0, context_said = real_of(0);
        has_base = answers = true;
        is_pool = is_physical = false;
        held = 0, questions = 0;
        type = CU_MEM_LOCATION_TYPE_DEVICE;
        written_gpu = -1, written_context = nullptr;
        split().find_owner = [](CUdeviceptr base, int* gpu, CUcontext* in) {
            CHECK(base == kBase);
            if (written_gpu < 0)
                return false;
            *gpu = written_gpu;
            *in = written_context;
            return true;
        };
        driver.put(Function::cuPointerGetAttribute, attribute_of);
        driver.put(
            Function::cuPointerGetAttributes,
            +[](unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) -> CUresult {
                for (unsigned i = 0; i < count; i++)
                    if (data[i])
                        attribute_of(data[i], attributes[i], address);
                questions = 0;
                return answers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
            });
        driver.put(
            Function::cuMemRetainAllocationHandle, +[](CUmemGenericAllocationHandle* into, void*) -> CUresult {
                if (!is_physical)
                    return CUDA_ERROR_INVALID_VALUE;
                held++;
                *into = kPhysical;
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuMemRelease, +[](CUmemGenericAllocationHandle handle) -> CUresult {
                CHECK(handle == kPhysical);
                held--;
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuMemRangeGetAttribute,
            +[](void* data, size_t size, CUmem_range_attribute attribute, CUdeviceptr, size_t) -> CUresult {
                return range_of(data, size, attribute);
            });
        driver.put(
            Function::cuMemRangeGetAttributes,
            +[](void** data, size_t* sizes, CUmem_range_attribute* attributes, size_t count, CUdeviceptr,
                size_t) -> CUresult {
                for (size_t i = 0; i < count; i++)
                    range_of(data[i], sizes[i], attributes[i]);
                return answers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
            });
    }
    ~Scene() {
        split().find_owner = Split::know_no_owner;
        handle_registry().remove(kPool, HandleKind::pool);
        handle_registry().remove(reinterpret_cast<const void*>(kPhysical), HandleKind::physical_memory);
    }
    /// By both functions.
    static int gpu() {
        int one = -9, two = -9;
        CHECK(split_driver::cuPointerGetAttribute(&one, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, kAddress) == CUDA_SUCCESS);
        CUpointer_attribute which = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        void* data = &two;
        CHECK(split_driver::cuPointerGetAttributes(1, &which, &data, kAddress) == CUDA_SUCCESS);
        CHECK(one == two);
        return one;
    }
    static CUcontext context() {
        CUcontext one = nullptr;
        CHECK(split_driver::cuPointerGetAttribute(&one, CU_POINTER_ATTRIBUTE_CONTEXT, kAddress) == CUDA_SUCCESS);
        return one;
    }
};

}  // namespace

TEST_CASE("a pointer is its virtual GPU's by what was written down, else by its pool or its physical memory") {
    Scene scene;
    REQUIRE(handle_registry().add(kPool, HandleKind::pool, 1, 0));
    REQUIRE(handle_registry().add(reinterpret_cast<const void*>(kPhysical), HandleKind::physical_memory, 1, 0));
    CHECK(scene.gpu() == 0);  // nothing is known: the physical GPU's first part
    is_pool = true;
    CHECK(scene.gpu() == 1);
    is_pool = false;
    is_physical = true;
    CHECK(scene.gpu() == 1);
    CHECK(held == 0);
    handle_registry().remove(reinterpret_cast<const void*>(kPhysical), HandleKind::physical_memory);
    CHECK(scene.gpu() == 0);
    written_gpu = 2;
    is_pool = true;
    CHECK(scene.gpu() == 2);
    has_base = false;
    CHECK(scene.gpu() == 0);
    MadeUpDriver::lacks(Function::cuMemRetainAllocationHandle);
    written_gpu = -1, has_base = true, is_pool = false;
    CHECK(scene.gpu() == 0);
}

TEST_CASE("what the driver calls no GPU's or no context's stays so") {
    Scene scene;
    written_gpu = 1;
    ordinal = CU_DEVICE_CPU;
    context_said = nullptr;
    CHECK(scene.gpu() == CU_DEVICE_CPU);
    CHECK(scene.context() == nullptr);
}

TEST_CASE("a pointer's context is the one that is written down, else the virtual one of its real one") {
    Scene scene;
    const CUcontext mine = scene.create(1);
    CHECK(scene.context() == mine);
    written_gpu = 0;
    CHECK(scene.context() == mine);
    written_context = tests::context(66);
    CHECK(scene.context() == tests::context(66));
    context_said = tests::context(70);
    written_context = nullptr;
    CHECK(scene.context() == tests::context(70));
}

TEST_CASE("of several attributes of a pointer those that name a GPU are corrected, wherever they stand") {
    Scene scene;
    written_gpu = 1;
    written_context = tests::context(66);
    const auto kGpu = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    const auto kContext = CU_POINTER_ATTRIBUTE_CONTEXT;
    const auto kOther = CU_POINTER_ATTRIBUTE_IS_MANAGED;
    for (const bool first : {true, false}) {
        int gpu = -9, other = -9;
        CUcontext in = nullptr;
        CUpointer_attribute which[] = {first ? kGpu : kOther, kContext, kContext, first ? kOther : kGpu};
        void* data[] = {first ? &gpu : &other, &in, nullptr, first ? &other : &gpu};
        REQUIRE(split_driver::cuPointerGetAttributes(4, which, data, kAddress) == CUDA_SUCCESS);
        CHECK(gpu == 1);
        CHECK(in == tests::context(66));
        CHECK(other == 55);
        // One of them alone is enough.
        gpu = -9;
        CUpointer_attribute two[] = {first ? kGpu : kOther, first ? kOther : kGpu};
        void* places[] = {first ? &gpu : &other, first ? &other : &gpu};
        REQUIRE(split_driver::cuPointerGetAttributes(2, two, places, kAddress) == CUDA_SUCCESS);
        CHECK(gpu == 1);
    }
}

TEST_CASE("attributes of a pointer that name no GPU, or that the driver refuses, cost no question more") {
    Scene scene;
    written_gpu = 1;
    int other = 0, gpu = -9;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void* data[] = {&other, &other};
    CHECK(split_driver::cuPointerGetAttributes(2, which, data, kAddress) == CUDA_SUCCESS);
    CHECK(questions == 0);
    CHECK(split_driver::cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_IS_MANAGED, kAddress) == CUDA_SUCCESS);
    CHECK(questions == 1);
    CHECK(other == 55);
    answers = false;
    questions = 0;
    CHECK(split_driver::cuPointerGetAttribute(&gpu, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, kAddress) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(questions == 1);
    CHECK(gpu == 0);
    which[0] = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    data[0] = &gpu;
    CHECK(split_driver::cuPointerGetAttributes(2, which, data, kAddress) == CUDA_ERROR_INVALID_VALUE);
    CHECK(questions == 0);
    CHECK(gpu == 0);
}

TEST_CASE("places of managed memory are shown as virtual GPUs, and what is no place as it is") {
    Scene scene;
    const auto ask = [](CUmem_range_attribute attribute, size_t count) {
        std::vector<int> one(count + 1, 33), two(count + 1, 33);
        CHECK(split_driver::cuMemRangeGetAttribute(one.data(), count * sizeof(int), attribute, kAddress, 4096) ==
              (answers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
        void* data = two.data();
        size_t size = count * sizeof(int);
        CHECK(split_driver::cuMemRangeGetAttributes(&data, &size, &attribute, 1, kAddress, 4096) ==
              (answers ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
        CHECK(one == two);
        CHECK(one.back() == 33);
        one.pop_back();
        return one;
    };
    using Places = std::vector<int>;
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 1) == Places{2});
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 1) == Places{2});
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, 4) == Places{2, 0, -2, -2});
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1) == Places{1});
    for (const auto id :
         {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID}) {
        type = CU_MEM_LOCATION_TYPE_DEVICE;
        CHECK(ask(id, 1) == Places{2});
        type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
        CHECK(ask(id, 1) == Places{1});
    }
    answers = false;
    CHECK(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 1) == Places{1});
}
