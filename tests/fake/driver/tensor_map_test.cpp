// SPDX-License-Identifier: Apache-2.0
// Tensor maps: every rule of the manual is kept, and one that is broken leaves the map alone.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

/// Arguments of all three functions. Each begins with good ones: 64 x 32 x 8 x 4 half floats, as {C, W, H, N}.
struct Arguments {
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    unsigned rank = 4;
    uintptr_t address = 0x7f0000000400;
    std::array<cuuint64_t, 5> dimensions{64, 32, 8, 4, 1};
    std::array<cuuint64_t, 4> strides{128, 4096, 32768, 131072};
    std::array<unsigned, 5> box{64, 16, 8, 1, 1}, steps{1, 1, 1, 1, 1};
    std::array<int, 3> lower{-1, -1, -1}, upper{-1, -1, -1};
    unsigned channels = 64, pixels = 128;
    CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
    CUtensorMapIm2ColWideMode mode = CU_TENSOR_MAP_IM2COL_WIDE_MODE_W;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

    void* place() const { return reinterpret_cast<void*>(address); }
    CUresult tiled(CUtensorMap* map) const {
        return cuTensorMapEncodeTiled(map, type, rank, place(), dimensions.data(), strides.data(), box.data(),
                                      steps.data(), interleave, swizzle, promotion, fill);
    }
    CUresult im2col(CUtensorMap* map) const {
        return cuTensorMapEncodeIm2col(map, type, rank, place(), dimensions.data(), strides.data(), lower.data(),
                                       upper.data(), channels, pixels, steps.data(), interleave, swizzle, promotion,
                                       fill);
    }
    CUresult wide(CUtensorMap* map) const {
        return cuTensorMapEncodeIm2colWide(map, type, rank, place(), dimensions.data(), strides.data(), lower[0],
                                           upper[0], channels, pixels, steps.data(), interleave, mode, swizzle,
                                           promotion, fill);
    }
};

using Encode = CUresult (Arguments::*)(CUtensorMap*) const;
constexpr Encode all[] = {&Arguments::tiled, &Arguments::im2col, &Arguments::wide};
using Change = std::function<void(Arguments&)>;

Environment on(const char* gpu) { return {{"CUSLICE_FAKE", gpu}}; }

/// Encodes the good arguments after a change, and returns the result. A refusal leaves the map as it was.
CUresult answer(const Report& report, Encode encode, const Change& change) {
    Arguments arguments;
    change(arguments);
    CUtensorMap map, before;
    std::memset(&map, 0x5a, sizeof map);
    before = map;
    const CUresult result = (arguments.*encode)(&map);
    EXPECT_EQUAL(std::memcmp(&map, &before, sizeof map) == 0, result != CUDA_SUCCESS);
    return result;
}

void padded(Arguments& a, CUtensorMapDataType type) {
    a.type = type;
    a.dimensions[0] = a.box[0] = a.channels = 128;
}

}  // namespace

TEST_CASE("tensor maps are of Hopper's and later GPUs, and wide ones of Blackwell's") {
    struct Kind {
        const char* gpu;
        int major;
    };
    const Kind kind = GENERATE(Kind{"t4", 7}, Kind{"a100-40g", 8}, Kind{"l4", 8}, Kind{"h200", 9}, Kind{"b200", 10},
                               Kind{"gb10", 12});
    std::string said;
    CHECK(in_child(
              on(kind.gpu),
              [&](const Report& report) {
                  CUtensorMap map;
                  EXPECT_EQUAL(Arguments{}.tiled(&map), CUDA_ERROR_NOT_INITIALIZED);
                  EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
                  EXPECT_EQUAL(Arguments{}.tiled(&map), CUDA_ERROR_INVALID_CONTEXT);
                  use_device(report);
                  const auto from = [&](int major) {
                      return kind.major >= major ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
                  };
                  EXPECT_EQUAL(Arguments{}.tiled(&map), from(9));
                  EXPECT_EQUAL(cuTensorMapReplaceAddress(&map, Arguments{}.place()), from(9));
                  EXPECT_EQUAL(Arguments{}.im2col(&map), from(9));
                  EXPECT_EQUAL(Arguments{}.wide(&map), from(10));
              },
              &said) == "");
    CHECK(said == "");
}

TEST_CASE("what all tensor maps have in common is checked by the manual's rules") {
    CHECK(in_child(on("b200"), [](const Report& report) {
              use_device(report);
              using A = Arguments;
              const std::vector<Change> good = {
                  [](A& a) { a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; },
                  [](A& a) { a.dimensions[1] = cuuint64_t{1} << 32; },
                  [](A& a) { a.strides[2] = (cuuint64_t{1} << 40) - 16; },
                  [](A& a) {
                      a.steps = {0, 8, 8, 8, 0};
                  },
                  [](A& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B; },
                  [](A& a) { padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B); },
                  [](A& a) { padded(a, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B); },
                  [](A& a) { padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B); },
                  [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; },
              };
              const std::vector<Change> bad = {
                  [](A& a) { a.type = static_cast<CUtensorMapDataType>(16); },
                  [](A& a) { a.rank = 0; },
                  [](A& a) { a.rank = 6; },
                  [](A& a) { a.address += 8; },
                  [](A& a) { a.address = 0; },
                  [](A& a) { a.dimensions[2] = 0; },
                  [](A& a) { a.dimensions[1] = (cuuint64_t{1} << 32) + 1; },
                  [](A& a) { a.strides[0] += 8; },
                  [](A& a) { a.strides[2] = cuuint64_t{1} << 40; },
                  [](A& a) { a.steps[1] = 0; },
                  [](A& a) { a.steps[3] = 9; },
                  [](A& a) { a.interleave = static_cast<CUtensorMapInterleave>(3); },
                  [](A& a) { a.swizzle = static_cast<CUtensorMapSwizzle>(7); },
                  [](A& a) { a.promotion = static_cast<CUtensorMapL2promotion>(4); },
                  [](A& a) { a.fill = static_cast<CUtensorMapFloatOOBfill>(2); },
                  [](A& a) {
                      a.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
                      a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
                  },
                  [](A& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; },  // 128 bytes in a span of 64
                  [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; },
                  [](A& a) {
                      a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
                      a.steps[0] = 0;  // which counts here
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
                      a.address += 16;
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
                      a.dimensions[0] = 64;
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
                      a.box[0] = a.channels = 64;
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
                      a.strides[1] += 16;
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
                      a.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B;
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
                      a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
                  },
                  [](A& a) {
                      padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B);
                      a.dimensions[0] = 127;
                  },
              };
              for (const Encode encode : all) {
                  for (const Change& change : good)
                      EXPECT_EQUAL(answer(report, encode, change), CUDA_SUCCESS);
                  for (const Change& change : bad)
                      EXPECT_EQUAL(answer(report, encode, change), CUDA_ERROR_INVALID_VALUE);
                  alignas(64) unsigned char room[256];
                  EXPECT_EQUAL((Arguments{}.*encode)(nullptr), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL((Arguments{}.*encode)(reinterpret_cast<CUtensorMap*>(room + 32)),
                               CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL((Arguments{}.*encode)(reinterpret_cast<CUtensorMap*>(room + 64)), CUDA_SUCCESS);
              }
          }) == "");
}

TEST_CASE("each kind of tensor map has rules of its own") {
    CHECK(in_child(on("b200"), [](const Report& report) {
              use_device(report);
              using A = Arguments;
              const auto tiled = [&](const Change& change) { return answer(report, &A::tiled, change); };
              const auto im2col = [&](const Change& change) { return answer(report, &A::im2col, change); };
              const auto wide = [&](const Change& change) { return answer(report, &A::wide, change); };
              const CUresult bad = CUDA_ERROR_INVALID_VALUE;

              EXPECT_EQUAL(tiled([](A& a) { a.rank = 1; }), CUDA_SUCCESS);
              EXPECT_EQUAL(tiled([](A& a) { a.box[1] = 256; }), CUDA_SUCCESS);
              EXPECT_EQUAL(tiled([](A& a) { a.box[1] = 257; }), bad);
              EXPECT_EQUAL(tiled([](A& a) { a.box[2] = 0; }), bad);
              EXPECT_EQUAL(tiled([](A& a) { a.box[0] = 60; }), bad);  // 120 bytes
              EXPECT_EQUAL(tiled([](A& a) { a.box[0] = 56; }), CUDA_SUCCESS);
              const Change thin = [](A& a) {
                  a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
                  a.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
              };
              EXPECT_EQUAL(tiled(thin), CUDA_SUCCESS);
              EXPECT_EQUAL(tiled([&](A& a) {
                               thin(a);
                               a.rank = 2;
                           }),
                           bad);
              EXPECT_EQUAL(tiled([&](A& a) {
                               thin(a);
                               a.address += 16;
                           }),
                           bad);

              for (const unsigned rank : {1U, 2U}) {
                  EXPECT_EQUAL(im2col([&](A& a) { a.rank = rank; }), bad);
                  EXPECT_EQUAL(wide([&](A& a) { a.rank = rank; }), bad);
              }
              EXPECT_EQUAL(im2col([](A& a) { a.lower = {-128, 127, 0}; }), bad);  // nothing is left of H
              EXPECT_EQUAL(im2col([](A& a) { a.lower = {-128, 7, 0}, a.upper = {127, 0, 0}; }), CUDA_SUCCESS);
              EXPECT_EQUAL(im2col([](A& a) { a.lower[1] = -129; }), bad);
              EXPECT_EQUAL(im2col([](A& a) { a.upper[0] = 128; }), bad);
              EXPECT_EQUAL(im2col([](A& a) { a.rank = 5, a.lower[2] = -17; }), bad);
              EXPECT_EQUAL(im2col([](A& a) { a.rank = 3, a.lower[0] = -32768; }), CUDA_SUCCESS);
              EXPECT_EQUAL(im2col([](A& a) { a.channels = 257; }), bad);
              EXPECT_EQUAL(im2col([](A& a) { a.pixels = 1024; }), CUDA_SUCCESS);
              EXPECT_EQUAL(im2col([](A& a) { a.pixels = 1025; }), bad);

              EXPECT_EQUAL(wide([](A& a) { a.pixels = 1025; }), bad);
              EXPECT_EQUAL(wide([](A& a) {
                               a.pixels = 1025;
                               a.mode = CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128;
                           }),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(wide([](A& a) { a.mode = static_cast<CUtensorMapIm2ColWideMode>(2); }), bad);
              EXPECT_EQUAL(wide([](A& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; }), bad);
              EXPECT_EQUAL(wide([](A& a) { a.lower[0] = 32; }), bad);
              EXPECT_EQUAL(wide([](A& a) { a.upper[0] = 32768; }), bad);
          }) == "");
}

TEST_CASE("packed elements and finer swizzles are Blackwell's") {
    CHECK(in_child(on("h200"), [](const Report& report) {
              use_device(report);
              const auto tiled = [&](const Change& change) { return answer(report, &Arguments::tiled, change); };
              EXPECT_EQUAL(tiled([](Arguments& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B; }),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(tiled([](Arguments& a) { padded(a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B); }),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(tiled([](Arguments&) {}), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a tensor map can be copied, and takes another address that is aligned as it needs") {
    CHECK(in_child(on("h200"), [](const Report& report) {
              use_device(report);
              CUtensorMap map, moved, expected, blank{};
              Arguments arguments;
              EXPECT_EQUAL(arguments.tiled(&map), CUDA_SUCCESS);
              arguments.address += 16;
              EXPECT_EQUAL(arguments.tiled(&expected), CUDA_SUCCESS);
              moved = map;
              EXPECT_EQUAL(cuTensorMapReplaceAddress(&moved, arguments.place()), CUDA_SUCCESS);
              EXPECT(std::memcmp(&moved, &expected, sizeof moved) == 0);
              EXPECT(std::memcmp(&moved, &map, sizeof moved) != 0);
              arguments.address += 8;
              EXPECT_EQUAL(cuTensorMapReplaceAddress(&moved, arguments.place()), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuTensorMapReplaceAddress(&moved, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuTensorMapReplaceAddress(nullptr, arguments.place()), CUDA_ERROR_INVALID_VALUE);
              EXPECT(std::memcmp(&moved, &expected, sizeof moved) == 0);
              EXPECT_EQUAL(cuTensorMapReplaceAddress(&blank, Arguments{}.place()), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
