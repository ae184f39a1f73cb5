// SPDX-License-Identifier: Apache-2.0
// Least size of an array, by its descriptor.
#include "shim/driver/array_size.h"

#include "tests/catch.h"

using namespace cuslice;

namespace {

CUDA_ARRAY3D_DESCRIPTOR floats(size_t width, size_t height, size_t depth, unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR array{};
    array.Width = width;
    array.Height = height;
    array.Depth = depth;
    array.Format = CU_AD_FORMAT_FLOAT;
    array.NumChannels = 1;
    array.Flags = flags;
    return array;
}

CUDA_ARRAY_DESCRIPTOR plane(size_t width, size_t height, CUarray_format format, unsigned channels) {
    CUDA_ARRAY_DESCRIPTOR array{};
    array.Width = width;
    array.Height = height;
    array.Format = format;
    array.NumChannels = channels;
    return array;
}

uint64_t least(const CUDA_ARRAY_DESCRIPTOR& array) { return least_2d(&array); }
uint64_t least(const CUDA_ARRAY3D_DESCRIPTOR& array, unsigned levels = 1) { return least_3d(&array, levels); }

}  // namespace

TEST_CASE("an array takes what its channels do") {
    struct Row {
        CUarray_format format;
        uint64_t bytes;
    };
    for (const Row row :
         {Row{CU_AD_FORMAT_UNSIGNED_INT8, 1}, Row{CU_AD_FORMAT_SIGNED_INT8, 1}, Row{CU_AD_FORMAT_UNSIGNED_INT16, 2},
          Row{CU_AD_FORMAT_SIGNED_INT16, 2}, Row{CU_AD_FORMAT_HALF, 2}, Row{CU_AD_FORMAT_UNSIGNED_INT32, 4},
          Row{CU_AD_FORMAT_SIGNED_INT32, 4}, Row{CU_AD_FORMAT_FLOAT, 4}}) {
        CAPTURE(row.format);
        CHECK(least(plane(10, 5, row.format, 4)) == 200 * row.bytes);
        CUDA_ARRAY3D_DESCRIPTOR box = floats(10, 5, 3);
        box.Format = row.format;
        box.NumChannels = 2;
        CHECK(least(box) == 300 * row.bytes);
    }
    // Its elements share bytes.
    CHECK(least(plane(100, 100, CU_AD_FORMAT_NV12, 3)) == 0);
}

TEST_CASE("an array of fewer dimensions has one row, or one layer") {
    CHECK(least(plane(100, 0, CU_AD_FORMAT_FLOAT, 1)) == 400);
    CHECK(least(plane(100, 1, CU_AD_FORMAT_FLOAT, 1)) == 400);
    CHECK(least(plane(100, 2, CU_AD_FORMAT_FLOAT, 1)) == 800);
    CHECK(least(floats(100, 0, 0)) == 400);
    CHECK(least(floats(100, 7, 0)) == 2800);
    CHECK(least(floats(100, 7, 1)) == 2800);
    CHECK(least(floats(100, 7, 2)) == 5600);
    CHECK(least(floats(0, 7, 2)) == 0);
}

TEST_CASE("what has no memory of its own, and no descriptor, takes nothing") {
    CHECK(least(floats(100, 100, 0, CUDA_ARRAY3D_SPARSE)) == 0);
    CHECK(least(floats(100, 100, 0, CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0);
    CHECK(least(floats(100, 100, 0, CUDA_ARRAY3D_SURFACE_LDST)) == 40000);
    CHECK(least_2d(static_cast<const CUDA_ARRAY_DESCRIPTOR*>(nullptr)) == 0);
    CHECK(least_3d(static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(nullptr)) == 0);
}

TEST_CASE("each level of a mipmapped array is half the one before, down to one element") {
    CHECK(least(floats(8, 8, 0), 1) == 4 * 64);
    CHECK(least(floats(8, 8, 0), 2) == 4 * (64 + 16));
    CHECK(least(floats(8, 8, 0), 4) == 4 * (64 + 16 + 4 + 1));
    CHECK(least(floats(8, 4, 2), 4) == 4 * (64 + 8 + 2 + 1));
    CHECK(least(floats(7, 3, 0), 3) == 4 * (21 + 3 + 1));
    CHECK(least(floats(2, 8, 0), 4) == 4 * (16 + 4 + 2 + 1));
    CHECK(least(floats(1, 1, 8), 4) == 4 * (8 + 4 + 2 + 1));
    // No more of them than that, and no fewer than one.
    CHECK(least(floats(8, 8, 0), 5) == least(floats(8, 8, 0), 4));
    CHECK(least(floats(8, 8, 0), ~0u) == least(floats(8, 8, 0), 4));
    CHECK(least(floats(1, 1, 8), 99) == least(floats(1, 1, 8), 4));
    CHECK(least(floats(2, 8, 0), 99) == least(floats(2, 8, 0), 4));
    CHECK(least(floats(8, 8, 0), 0) == 4 * 64);
    CHECK(least(floats(0, 0, 0), 9) == 0);
}

TEST_CASE("levels of a layered array have all of its layers") {
    const unsigned layers = GENERATE(unsigned{CUDA_ARRAY3D_LAYERED}, unsigned{CUDA_ARRAY3D_CUBEMAP});
    CHECK(least(floats(4, 4, 6, layers), 3) == 4 * 6 * (16 + 4 + 1));
    // As many levels as its sides have, however many layers there are.
    CHECK(least(floats(4, 4, 64, layers), 99) == 4 * 64 * (16 + 4 + 1));
    CHECK(least(floats(4, 4, 6), 3) == 4 * (96 + 12 + 1));
}

TEST_CASE("what no number holds is more than any limit") {
    const size_t huge = size_t{1} << 62;
    CHECK(least(plane(huge, 1, CU_AD_FORMAT_FLOAT, 1)) == ~0ull);
    CHECK(least(plane(huge, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1)) == huge * 2);
    CHECK(least(plane(huge, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1)) == ~0ull);
    CHECK(least(floats(huge, 1, 1)) == ~0ull);
    CHECK(least(floats(size_t{1} << 31, size_t{1} << 31, 2)) == ~0ull);
    // One level fits, and all together don't.
    CHECK(least(floats((size_t{1} << 62) - 1, 0, 0), 1) == ((size_t{1} << 62) - 1) * 4);
    CHECK(least(floats((size_t{1} << 62) - 1, 0, 0), 2) == ~0ull);
}
