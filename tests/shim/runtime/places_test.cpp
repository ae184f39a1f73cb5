// SPDX-License-Identifier: Apache-2.0
// Owners of pointers and streams, and locations of managed memory, by the GPU numbers of programs on the runtime.
#include "shim/runtime/places.h"

#include <malloc.h>

#include <vector>

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

cudaError_t put_attributes(cudaPointerAttributes* attributes, const void*) {
    attributes->device = made_up().runtime_device;
    return made_up().runtime_says;
}

const void* const kPointer = reinterpret_cast<const void*>(uintptr_t{103});  // of the part 3, says the driver

}  // namespace

TEST_CASE("a pointer is of the part that allocated it") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaPointerGetAttributes, &put_attributes);
    cudaPointerAttributes about{};
    CHECK(ASK(cudaPointerGetAttributes, &about, kPointer) ==
          in_words("cuPointerGetAttribute", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 103));
    CHECK(about.device == 3);
    // A pointer for which the driver knows no GPU is shown on the thread's partition.
    runtime.driver_says = CUDA_ERROR_INVALID_VALUE;
    ASK(cudaPointerGetAttributes, &about, kPointer);
    CHECK(runtime.result == cudaSuccess);
    CHECK(about.device == 2);
    runtime.driver_says = CUDA_SUCCESS;
    ASK(cudaPointerGetAttributes, &about, reinterpret_cast<const void*>(uintptr_t{99}));
    CHECK(about.device == 2);
    ASK(cudaPointerGetAttributes, &about, reinterpret_cast<const void*>(uintptr_t{100}));
    CHECK(about.device == 0);
    // The runtime knows none, or refuses: nothing to translate.
    runtime.runtime_device = -2;
    CHECK(ASK(cudaPointerGetAttributes, &about, kPointer).empty());
    CHECK(about.device == -2);
    runtime.runtime_device = 0;
    ASK(cudaPointerGetAttributes, &about, kPointer);
    CHECK(about.device == 3);
    runtime.runtime_device = 1;
    runtime.runtime_says = cudaErrorInvalidValue;
    ASK(cudaPointerGetAttributes, &about, kPointer);
    CHECK(about.device == 1);
    runtime.runtime_says = cudaSuccess;
    runtime.split = false;
    ASK(cudaPointerGetAttributes, &about, kPointer);
    CHECK(about.device == 1);
}

TEST_CASE("a stream is of the part that it was made on") {
    MadeUpRuntime runtime;
    int device = -7;
    CHECK(ASK(cudaStreamGetDevice, nullptr, &device) == "cudaStreamGetDevice 0 *; cuStreamGetDevice 0");
    CHECK(device == 3);
    device = -7;
    CHECK(ASK(cudaStreamGetDevice_ptsz, nullptr, &device) == "cudaStreamGetDevice_ptsz 0 *; cuStreamGetDevice_ptsz 0");
    CHECK(device == 3);
    runtime.driver_says = CUDA_ERROR_INVALID_CONTEXT;
    ASK(cudaStreamGetDevice, nullptr, &device);
    CHECK(runtime.result == cudaErrorDeviceUninitialized);
    ASK(cudaStreamGetDevice_ptsz, nullptr, &device);
    CHECK(runtime.result == cudaErrorDeviceUninitialized);
    runtime.driver_says = CUDA_SUCCESS;
    // The runtime refuses what is none.
    runtime.runtime_says = cudaErrorInvalidResourceHandle;
    CHECK(ASK(cudaStreamGetDevice, nullptr, &device) == "cudaStreamGetDevice 0 *");
    CHECK(runtime.result == cudaErrorInvalidResourceHandle);
    CHECK(ASK(cudaStreamGetDevice_ptsz, nullptr, &device) == "cudaStreamGetDevice_ptsz 0 *");
    CHECK(runtime.result == cudaErrorInvalidResourceHandle);
    runtime.runtime_says = cudaSuccess;
    runtime.split = false;
    CHECK(ASK(cudaStreamGetDevice, nullptr, &device) == "cudaStreamGetDevice 0 *");
    CHECK(ASK(cudaStreamGetDevice_ptsz, nullptr, &device) == "cudaStreamGetDevice_ptsz 0 *");
}

TEST_CASE("managed memory is advised and fetched to the physical GPU, or to the host") {
    MadeUpRuntime runtime;
    const auto advice = cudaMemAdviseSetPreferredLocation;
    const size_t bytes = 8;
    const std::string prefix = in_words("cudaMemAdvise", kPointer, bytes, advice);
    CHECK(ASK_FORM(cudaMemAdvise, 11, kPointer, bytes, advice, 3) == prefix + " 1");
    CHECK(ASK_FORM(cudaMemAdvise, 12, kPointer, bytes, advice, 3) == prefix + " 1");
    CHECK(ASK_FORM(cudaMemAdvise, 12, kPointer, bytes, advice, cudaCpuDeviceId) == prefix + " -1");
    // One that isn't there is not the host.
    CHECK(ASK_FORM(cudaMemAdvise, 12, kPointer, bytes, advice, 100) == prefix + " -2");
    // A caller that names no version has the newest form, whose arguments an older runtime doesn't take.
    runtime.functions.clear();
    runtime.version = 12;
    CHECK(ASK_FORM(cudaMemAdvise, 13, kPointer, bytes, advice, on_gpu(3)).empty());
    CHECK(runtime.result == cudaErrorNotSupported);
    runtime.version = 13;
    CHECK(ASK_FORM(cudaMemAdvise, 13, kPointer, bytes, advice, on_gpu(3)) == prefix + " gpu1");
    CHECK(ASK_FORM(cudaMemAdvise, 13, kPointer, bytes, advice, on_host()) == prefix + " host3");
    CHECK(ASK_12(cudaMemAdvise_v2, kPointer, bytes, advice, on_gpu(2)) ==
          in_words("cudaMemAdvise_v2", kPointer, bytes, advice) + " gpu1");

    CHECK(ASK_FORM(cudaMemPrefetchAsync, 11, kPointer, bytes, 3, nullptr) == "cudaMemPrefetchAsync * 8 1 0");
    CHECK(ASK_FORM(cudaMemPrefetchAsync_ptsz, 11, kPointer, bytes, 3, nullptr) == "cudaMemPrefetchAsync_ptsz * 8 1 0");
    CHECK(ASK_FORM(cudaMemPrefetchAsync, 12, kPointer, bytes, 3, nullptr) == "cudaMemPrefetchAsync * 8 1 0");
    CHECK(ASK_FORM(cudaMemPrefetchAsync, 12, kPointer, bytes, cudaCpuDeviceId, nullptr) ==
          "cudaMemPrefetchAsync * 8 -1 0");
    CHECK(ASK_FORM(cudaMemPrefetchAsync, 12, kPointer, bytes, 100, nullptr) == "cudaMemPrefetchAsync * 8 -2 0");
    CHECK(ASK_FORM(cudaMemPrefetchAsync_ptsz, 12, kPointer, bytes, 3, nullptr) == "cudaMemPrefetchAsync_ptsz * 8 1 0");
    runtime.functions.clear();
    CHECK(ASK_FORM(cudaMemPrefetchAsync, 13, kPointer, bytes, on_gpu(3), 5u, nullptr) ==
          "cudaMemPrefetchAsync * 8 gpu1 5 0");
    CHECK(ASK_FORM(cudaMemPrefetchAsync_ptsz, 13, kPointer, bytes, on_gpu(3), 5u, nullptr) ==
          "cudaMemPrefetchAsync_ptsz * 8 gpu1 5 0");
    CHECK(ASK_12(cudaMemPrefetchAsync_v2, kPointer, bytes, on_gpu(3), 5u, nullptr) ==
          "cudaMemPrefetchAsync_v2 * 8 gpu1 5 0");
    CHECK(ASK_12(cudaMemPrefetchAsync_v2_ptsz, kPointer, bytes, on_gpu(3), 5u, nullptr) ==
          "cudaMemPrefetchAsync_v2_ptsz * 8 gpu1 5 0");
}

TEST_CASE("each place of a batch is translated, and the program's array stays as it is") {
    MadeUpRuntime runtime;
    const size_t count = GENERATE(1, 2, 64, 65, 100);
    INFO(count);
    std::vector<cudaMemLocation> places;
    std::string expected;
    for (size_t i = 0; i < count; i++) {
        places.push_back(i % 3 == 2 ? on_host() : on_gpu(static_cast<int>(i % 4)));
        expected += (i ? "," : "") + text(runtime::physical(places.back()));
    }
    CHECK(expected.find("gpu3") == std::string::npos);
    const std::vector<cudaMemLocation> before = places;
    const auto same = [&] {
        bool all = true;
        for (size_t i = 0; i < count; i++)
            all = all && places[i].type == before[i].type && places[i].id == before[i].id;
        return all;
    };
    runtime.items = count;
    void* pointer = nullptr;
    size_t size = 8, index = 0;
    const std::string end = " * " + std::to_string(count) + " 5 0";
    CHECK(ASK(cudaMemPrefetchBatchAsync, &pointer, &size, size_t{1}, places.data(), &index, count, 5ull, nullptr) ==
          "cudaMemPrefetchBatchAsync * * 1 " + expected + end);
    CHECK(ASK(cudaMemPrefetchBatchAsync_ptsz, &pointer, &size, size_t{1}, places.data(), &index, count, 5ull,
              nullptr) == "cudaMemPrefetchBatchAsync_ptsz * * 1 " + expected + end);
    CHECK(ASK(cudaMemDiscardAndPrefetchBatchAsync, &pointer, &size, size_t{1}, places.data(), &index, count, 5ull,
              nullptr) == "cudaMemDiscardAndPrefetchBatchAsync * * 1 " + expected + end);
    CHECK(ASK(cudaMemDiscardAndPrefetchBatchAsync_ptsz, &pointer, &size, size_t{1}, places.data(), &index, count, 5ull,
              nullptr) == "cudaMemDiscardAndPrefetchBatchAsync_ptsz * * 1 " + expected + end);
    CHECK(same());
    runtime.runtime_says = cudaErrorInvalidValue;
    ASK(cudaMemPrefetchBatchAsync, &pointer, &size, size_t{1}, places.data(), &index, count, 5ull, nullptr);
    CHECK(runtime.result == cudaErrorInvalidValue);
}

TEST_CASE("a batch of more places than fit in a frame leaves no memory behind") {
    MadeUpRuntime runtime;
    const std::vector<cudaMemLocation> places(100, on_gpu(3));
    const auto fetch = [&] {
        return runtime::with_places(places.data(), places.size(), runtime::translate_place, [](cudaMemLocation* real) {
            return real[99].id == 1 ? cudaSuccess : cudaErrorUnknown;
        });
    };
    CHECK(fetch() == cudaSuccess);
    const size_t before = mallinfo2().uordblks;
    bool right = true;
    for (int i = 0; i < 1000; i++)
        right = right && fetch() == cudaSuccess;
    CHECK(right);
    CHECK(mallinfo2().uordblks < before + 100 * sizeof(cudaMemLocation) * 1000);
}

TEST_CASE("a batch without places, or where nothing is split, is the runtime's as it is") {
    MadeUpRuntime runtime;
    cudaMemLocation place = on_gpu(3);
    void* pointer = nullptr;
    size_t size = 8, index = 0;
    CHECK(ASK(cudaMemPrefetchBatchAsync, &pointer, &size, size_t{1}, nullptr, &index, size_t{1}, 5ull, nullptr) ==
          "cudaMemPrefetchBatchAsync * * 1 0 * 1 5 0");
    CHECK(ASK(cudaMemPrefetchBatchAsync, &pointer, &size, size_t{1}, &place, &index, size_t{0}, 5ull, nullptr) ==
          "cudaMemPrefetchBatchAsync * * 1 gpu3 * 0 5 0");
    runtime.split = false;
    CHECK(ASK(cudaMemPrefetchBatchAsync, &pointer, &size, size_t{1}, &place, &index, size_t{1}, 5ull, nullptr) ==
          "cudaMemPrefetchBatchAsync * * 1 gpu3 * 1 5 0");
}

TEST_CASE("the hints of batches of copies name physical GPUs") {
    MadeUpRuntime runtime;
    cudaMemcpyAttributes hints{};
    hints.srcLocHint = on_gpu(2);
    hints.dstLocHint = on_gpu(1);
    void* pointer = nullptr;
    size_t size = 8, index = 0, failed = 0;
    CHECK(ASK_FORM(cudaMemcpyBatchAsync, 12, &pointer, &pointer, &size, size_t{1}, &hints, &index, size_t{1}, &failed,
                   nullptr) == "cudaMemcpyBatchAsync * * * 1 gpu1>gpu0 * 1 * 0");
    CHECK(ASK_FORM(cudaMemcpyBatchAsync_ptsz, 12, &pointer, &pointer, &size, size_t{1}, &hints, &index, size_t{1},
                   &failed, nullptr) == "cudaMemcpyBatchAsync_ptsz * * * 1 gpu1>gpu0 * 1 * 0");
    runtime.functions.clear();
    CHECK(ASK_FORM(cudaMemcpyBatchAsync, 13, &pointer, &pointer, &size, size_t{1}, &hints, &index, size_t{1},
                   nullptr) == "cudaMemcpyBatchAsync * * * 1 gpu1>gpu0 * 1 0");
    CHECK(ASK_FORM(cudaMemcpyBatchAsync_ptsz, 13, &pointer, &pointer, &size, size_t{1}, &hints, &index, size_t{1},
                   nullptr) == "cudaMemcpyBatchAsync_ptsz * * * 1 gpu1>gpu0 * 1 0");
    hints.dstLocHint = on_host();
    CHECK(ASK_FORM(cudaMemcpyBatchAsync, 13, &pointer, &pointer, &size, size_t{1}, &hints, &index, size_t{1},
                   nullptr) == "cudaMemcpyBatchAsync * * * 1 gpu1>host3 * 1 0");
}

TEST_CASE("so do the ends of boxes that are memory, and not arrays") {
    MadeUpRuntime runtime;
    cudaMemcpy3DBatchOp boxes[2]{};
    boxes[0].src.type = boxes[0].dst.type = cudaMemcpyOperandTypePointer;
    boxes[0].src.op.ptr.locHint = on_gpu(1);
    boxes[0].dst.op.ptr.locHint = on_gpu(3);
    boxes[1].src.type = cudaMemcpyOperandTypeArray;
    // Where a pointer has its hint: a translation would change it.
    boxes[1].src.op.ptr.locHint = on_gpu(3);
    boxes[1].dst.type = cudaMemcpyOperandTypePointer;
    boxes[1].dst.op.ptr.locHint = on_host();
    runtime.items = 2;
    size_t failed = 0;
    const std::string expected = "gpu0>gpu1,array>host3";
    CHECK(ASK_FORM(cudaMemcpy3DBatchAsync, 12, size_t{2}, boxes, &failed, 5ull, nullptr) ==
          "cudaMemcpy3DBatchAsync 2 " + expected + " * 5 0");
    CHECK(ASK_FORM(cudaMemcpy3DBatchAsync_ptsz, 12, size_t{2}, boxes, &failed, 5ull, nullptr) ==
          "cudaMemcpy3DBatchAsync_ptsz 2 " + expected + " * 5 0");
    runtime.functions.clear();
    CHECK(ASK_FORM(cudaMemcpy3DBatchAsync, 13, size_t{2}, boxes, 5ull, nullptr) ==
          "cudaMemcpy3DBatchAsync 2 " + expected + " 5 0");
    CHECK(ASK_FORM(cudaMemcpy3DBatchAsync_ptsz, 13, size_t{2}, boxes, 5ull, nullptr) ==
          "cudaMemcpy3DBatchAsync_ptsz 2 " + expected + " 5 0");
    runtime::translate_box(boxes[1]);
    CHECK(boxes[1].src.op.ptr.locHint.id == 3);
}

TEST_CASE("what is known of a range of managed memory is told by the driver shim, which counts as the program") {
    MadeUpRuntime runtime;
    int data = 0;
    void* all = &data;
    size_t size = 4;
    cudaMemRangeAttribute attribute = cudaMemRangeAttributePreferredLocation;
    const std::string first = "cudaMemRangeGetAttribute * 4 " + std::to_string(attribute) + " * 8";
    const std::string many = "cudaMemRangeGetAttributes * * * 1 * 8";
    CHECK(ASK(cudaMemRangeGetAttribute, &data, size, attribute, kPointer, size_t{8}) ==
          first + "; cuMemRangeGetAttribute * 4 " + std::to_string(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) +
              " 103 8");
    CHECK(ASK(cudaMemRangeGetAttributes, &all, &size, &attribute, size_t{1}, kPointer, size_t{8}) ==
          many + "; cuMemRangeGetAttributes * * " + std::to_string(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) +
              " 1 103 8");
    runtime.driver_says = CUDA_ERROR_INVALID_CONTEXT;
    ASK(cudaMemRangeGetAttribute, &data, size, attribute, kPointer, size_t{8});
    CHECK(runtime.result == cudaErrorDeviceUninitialized);
    ASK(cudaMemRangeGetAttributes, &all, &size, &attribute, size_t{1}, kPointer, size_t{8});
    CHECK(runtime.result == cudaErrorDeviceUninitialized);
    // The runtime's refusals are its own.
    const bool refused = GENERATE(true, false);
    if (refused)
        runtime.runtime_says = cudaErrorInvalidValue;
    else
        runtime.split = false;
    CHECK(ASK(cudaMemRangeGetAttribute, &data, size, attribute, kPointer, size_t{8}) == first);
    CHECK(runtime.result == runtime.runtime_says);
    CHECK(ASK(cudaMemRangeGetAttributes, &all, &size, &attribute, size_t{1}, kPointer, size_t{8}) == many);
    CHECK(runtime.result == runtime.runtime_says);
}
