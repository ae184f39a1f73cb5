// SPDX-License-Identifier: Apache-2.0
// Hints that managed memory was given, told again.

#include <array>
#include <string>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

constexpr auto kFirst = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
constexpr int kDevice = CU_MEM_LOCATION_TYPE_DEVICE, kHost = CU_MEM_LOCATION_TYPE_HOST;

/// The eight attributes of a range.
std::string attributes_of(CUdeviceptr from, size_t bytes) {
    std::string text;
    for (int which = kFirst; which <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID; which++) {
        int value = 99;
        const auto attribute = static_cast<CUmem_range_attribute>(which);
        const CUresult result = cuMemRangeGetAttribute(&value, sizeof value, attribute, from, bytes);
        text += (text.empty() ? "" : " ") + std::to_string(result == CUDA_SUCCESS ? value : 1000 + result);
    }
    return text;
}

std::string words(std::array<int, 8> values) {
    std::string text;
    for (const int value : values)
        text += (text.empty() ? "" : " ") + std::to_string(value);
    return text;
}

CUmemLocation device(int ordinal) { return {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}; }
constexpr CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};

}  // namespace

TEST_CASE("managed memory knows its hints, of which a range has what all of its pages have") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              use_device(report);
              CUdeviceptr memory = 0;
              EXPECT_EQUAL(cuMemAllocManaged(&memory, 4 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              // H200, driver 580.159.04, 2026-11-27.
              const std::string untouched = words({0, -2, -2, -2, 0, -2, 0, -2});
              EXPECT_EQUAL(attributes_of(memory, 4 * MiB), untouched);
              EXPECT_EQUAL(cuMemAdvise(memory, 4 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device(1)), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAdvise(memory, 2 * MiB, CU_MEM_ADVISE_SET_READ_MOSTLY, host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAdvise(memory + MiB, 2 * MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, device(0)), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemPrefetchAsync(memory + 3 * MiB, MiB, host, 0, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(attributes_of(memory, 4 * MiB), words({0, 1, -2, -2, kDevice, 1, 0, -2}));
              EXPECT_EQUAL(attributes_of(memory, MiB), words({1, 1, -2, -2, kDevice, 1, 0, -2}));
              EXPECT_EQUAL(attributes_of(memory + MiB, MiB), words({1, 1, 0, -2, kDevice, 1, 0, -2}));
              EXPECT_EQUAL(attributes_of(memory + 3 * MiB, MiB), words({0, 1, -2, -1, kDevice, 1, kHost, -1}));
              EXPECT_EQUAL(cuMemAdvise(memory, MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host), CUDA_SUCCESS);
              EXPECT_EQUAL(attributes_of(memory, 4 * MiB), untouched);
              EXPECT_EQUAL(cuMemAdvise(memory, 4 * MiB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAdvise(memory, 4 * MiB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAdvise(memory, 4 * MiB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device(0)), CUDA_SUCCESS);
              EXPECT_EQUAL(attributes_of(memory, 3 * MiB), untouched);
              // A part of a page is the page.
              EXPECT_EQUAL(cuMemAdvise(memory + 100, 1, CU_MEM_ADVISE_SET_READ_MOSTLY, host), CUDA_SUCCESS);
              EXPECT_EQUAL(attributes_of(memory, 1), words({1, -2, -2, -2, 0, -2, 0, -2}));
              // Freed memory takes its hints along.
              EXPECT_EQUAL(cuMemFree(memory), CUDA_SUCCESS);
              CUdeviceptr again = 0;
              EXPECT_EQUAL(cuMemAllocManaged(&again, 4 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(again, memory);
              EXPECT_EQUAL(attributes_of(again, 1), untouched);
          }) == "");
}

TEST_CASE("of whoever accesses a range as many are named as there is room for") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              use_device(report);
              CUdeviceptr memory = 0, plain = 0;
              std::array<int, 4> by{};
              const auto accessed_by = CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
              EXPECT_EQUAL(cuMemAllocManaged(&memory, MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&plain, MiB), CUDA_SUCCESS);
              for (const int gpu : {1, 0})
                  EXPECT_EQUAL(cuMemAdvise(memory, MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, device(gpu)), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRangeGetAttribute(by.data(), sizeof by, accessed_by, memory, MiB), CUDA_SUCCESS);
              EXPECT(by == (std::array<int, 4>{0, 1, -2, -2}));
              const CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, 0};
              EXPECT_EQUAL(cuMemAdvise(memory, MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRangeGetAttribute(by.data(), sizeof by, accessed_by, memory, MiB), CUDA_SUCCESS);
              EXPECT(by == (std::array<int, 4>{0, 1, CU_DEVICE_CPU, -2}));
              by[1] = 9;
              EXPECT_EQUAL(cuMemRangeGetAttribute(by.data(), 4, accessed_by, memory, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(by[1], 9);
              int mostly = 9;
              CUmem_range_attribute both[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, accessed_by};
              void* data[] = {&mostly, by.data()};
              size_t sizes[] = {sizeof mostly, 8};
              EXPECT_EQUAL(cuMemRangeGetAttributes(data, sizes, both, 2, memory, MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(mostly, 0);
              EXPECT_EQUAL(by[1], 1);
              sizes[1] = 6;
              mostly = 9;
              EXPECT_EQUAL(cuMemRangeGetAttributes(data, sizes, both, 2, memory, MiB), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(mostly, 9);
              const auto refused = [&](void* to, size_t size, int attribute, CUdeviceptr from, size_t bytes) {
                  const auto asked = static_cast<CUmem_range_attribute>(attribute);
                  EXPECT_EQUAL(cuMemRangeGetAttribute(to, size, asked, from, bytes), CUDA_ERROR_INVALID_VALUE);
              };
              refused(&mostly, 8, kFirst, memory, MiB);
              refused(by.data(), 0, accessed_by, memory, MiB);
              refused(nullptr, 4, kFirst, memory, MiB);
              refused(&mostly, 4, 0, memory, MiB);
              refused(&mostly, 4, 9, memory, MiB);
              refused(&mostly, 4, kFirst, memory, 0);
              refused(&mostly, 4, kFirst, memory, MiB + 1);
              refused(&mostly, 4, kFirst, plain, MiB);
              EXPECT_EQUAL(cuMemRangeGetAttributes(data, sizes, both, 0, memory, MiB), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
