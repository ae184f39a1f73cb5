// SPDX-License-Identifier: Apache-2.0
// Pinned host memory: which virtual GPU's it is, until it goes.
#include <cstddef>
#include <cstdint>

#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

char* const kUntouched = reinterpret_cast<char*>(0xdead);
uintptr_t made = 0;
int freed = 0, unregistered = 0;
CUresult answer = CUDA_SUCCESS;

CUresult make(void** into) {
    if (!into)
        return CUDA_ERROR_INVALID_VALUE;
    *into = reinterpret_cast<void*>(0x10000 + 0x1000 * ++made);
    return answer;
}

HandleOwner owner_of(const void* address) { return handle_registry().find(address, HandleKind::host_memory); }

struct Scene : SplitScene {
    Scene() {
        made = 0, freed = unregistered = 0;
        answer = CUDA_SUCCESS;
        using enum Function;
        driver.put(
            cuMemAllocHost, +[](void** into, unsigned) -> CUresult { return make(into); });
        driver.put(
            cuMemAllocHost_v2, +[](void** into, size_t) -> CUresult { return make(into); });
        driver.put(
            cuMemHostAlloc, +[](void** into, size_t, unsigned) -> CUresult { return make(into); });
        driver.put(
            cuMemFreeHost, +[](void*) -> CUresult {
                freed += answer == CUDA_SUCCESS;
                return answer;
            });
        driver.put(
            cuMemHostRegister, +[](void*, size_t, unsigned) -> CUresult { return answer; });
        driver.put(
            cuMemHostRegister_v2, +[](void*, size_t, unsigned) -> CUresult { return answer; });
        driver.put(
            cuMemHostUnregister, +[](void*) -> CUresult {
                unregistered += answer == CUDA_SUCCESS;
                return answer;
            });
        create(1);
    }
    ~Scene() {
        for (uintptr_t one = 1; one <= made; one++)
            handle_registry().remove(reinterpret_cast<void*>(0x10000 + 0x1000 * one), HandleKind::host_memory);
    }
};

}  // namespace

TEST_CASE("pinned memory is the virtual GPU's on which it was made, by each function, until it is freed") {
    Scene scene;
    void* blocks[3] = {};
    CHECK(split_driver::cuMemAllocHost(&blocks[0], 100) == CUDA_SUCCESS);
    CHECK(split_driver::cuMemAllocHost_v2(&blocks[1], 100) == CUDA_SUCCESS);
    CHECK(split_driver::cuMemHostAlloc(&blocks[2], 100, 0) == CUDA_SUCCESS);
    const uint64_t context = CurrentVirtual::get().context->number;
    scene.create(0);  // and it is current
    for (void* const block : blocks) {
        CHECK(owner_of(block).known);
        CHECK(owner_of(block).device == 1);
        CHECK(owner_of(block).context == context);
        answer = CUDA_ERROR_INVALID_VALUE;
        CHECK(split_driver::cuMemFreeHost(block) == CUDA_ERROR_INVALID_VALUE);
        CHECK(owner_of(block).device == 1);
        answer = CUDA_SUCCESS;
        CHECK(split_driver::cuMemFreeHost(block) == CUDA_SUCCESS);
        CHECK_FALSE(owner_of(block).known);
    }
    CHECK(freed == 3);
}

TEST_CASE("registered memory is the virtual GPU's on which it was registered, until it no longer is") {
    Scene scene;
    static char memory[2][64];
    CHECK(split_driver::cuMemHostRegister(memory[0], 64, 0) == CUDA_SUCCESS);
    CHECK(split_driver::cuMemHostRegister_v2(memory[1], 64, 0) == CUDA_SUCCESS);
    for (char* const one : memory) {
        CHECK(owner_of(one).device == 1);
        CHECK(split_driver::cuMemHostUnregister(one) == CUDA_SUCCESS);
        CHECK_FALSE(owner_of(one).known);
    }
    answer = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    CHECK(split_driver::cuMemHostRegister_v2(memory[0], 64, 0) == answer);
    CHECK_FALSE(owner_of(memory[0]).known);
}

TEST_CASE("pinned memory whose owner there is no room to note is given back, and the caller's place is as it was") {
    Scene scene;
    void* into = kUntouched;
    CHECK(split_driver::cuMemHostAlloc(nullptr, 100, 0) == CUDA_ERROR_INVALID_VALUE);
    answer = CUDA_ERROR_OUT_OF_MEMORY;  // though it has written something
    CHECK(split_driver::cuMemHostAlloc(&into, 100, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    answer = CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    // Until the registry would have to grow.
    for (int i = 0; result == CUDA_SUCCESS && i < 10'000; i++) {
        into = kUntouched;
        const NoMemory none;
        result = split_driver::cuMemHostAlloc(&into, 100, 0);
    }
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(into == kUntouched);
    CHECK(freed == 1);
    static char memory[64];
    {
        const NoMemory none;
        CHECK(split_driver::cuMemHostRegister_v2(memory, 64, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    }
    CHECK(unregistered == 1);
}
