// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: descriptors, the search for an algorithm, and a multiplication that is checked and skipped.

#include "fake/cublaslt/descriptor.h"
#include "tests/catch.h"
#include "tests/fake/libraries/library.h"

using namespace fake_test;
using cuslice::fake::Algorithm;
using cuslice::fake::HeuristicResult;

namespace {

/// A multiplication of matrices of floats, 64 x 64, and what it needs.
struct Light {
    void *library, *handle = nullptr, *work = nullptr, *layout = nullptr, *preference = nullptr;
    CUdeviceptr matrix = 0;

    Light(const Report& report, const std::string& file) : library(open_library(report, file)) {
        const uint64_t size = 64;
        const int64_t ld = 64;
        EXPECT_EQUAL(call(library, "cublasLtCreate", &handle), Status::success);
        EXPECT_EQUAL(call(library, "cublasLtMatmulDescCreate", &work, 68, 0), Status::success);
        EXPECT_EQUAL(call(library, "cublasLtMatrixLayoutCreate", &layout, 0, size, size, ld), Status::success);
        EXPECT_EQUAL(call(library, "cublasLtMatmulPreferenceCreate", &preference), Status::success);
        EXPECT_EQUAL(cuMemAlloc(&matrix, 64 * 64 * 4), CUDA_SUCCESS);
    }
    ~Light() {
        call(library, "cublasLtMatmulDescDestroy", work);
        call(library, "cublasLtMatrixLayoutDestroy", layout);
        call(library, "cublasLtMatmulPreferenceDestroy", preference);
    }
    Light(const Light&) = delete;
    Status search(HeuristicResult* results, int* found, int wanted = 4) const {
        return call(library, "cublasLtMatmulAlgoGetHeuristic", handle, work, layout, layout, layout, layout, preference,
                    wanted, results, found);
    }
    Status multiply(const Algorithm* algorithm, CUdeviceptr a) const {
        const float one = 1;
        return call(library, "cublasLtMatmul", handle, work, &one, a, layout, matrix, layout, &one, matrix, layout,
                    matrix, layout, algorithm, CUdeviceptr{0}, size_t{0}, CUstream{nullptr});
    }
    template <class Value>
    Status set(const char* function, void* descriptor, int attribute, Value value) const {
        return call(library, function, descriptor, attribute, &value, sizeof value);
    }
};

}  // namespace

TEST_CASE("cuBLASLt: a search finds one algorithm, and the multiplication is skipped") {
    for (const char* file : {"libcublasLt.so.12", "libcublasLt.so.13"}) {
        std::string said;
        CHECK(in_child(
                  one_t4,
                  [&](const Report& report) {
                      use_device(report);
                      const Light light(report, file);
                      HeuristicResult results[4]{};
                      int found = 0;
                      EXPECT_EQUAL(light.search(results, &found), Status::success);
                      EXPECT_EQUAL(found, 1);
                      EXPECT_EQUAL(results[0].state, Status::success);
                      EXPECT_EQUAL(results[0].workspace, 0u);
                      EXPECT_EQUAL(light.multiply(&results[0].algorithm, light.matrix), Status::success);
                      EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::success);
                      EXPECT_EQUAL(light.search(results, &found, 0), Status::invalid_value);
                      results[0].algorithm.id = 66;
                      EXPECT_EQUAL(light.multiply(&results[0].algorithm, light.matrix), Status::invalid_value);
                      EXPECT_EQUAL(light.multiply(nullptr, 0), Status::execution_failed);
                  },
                  &said) == "");
        CHECK(count_of(said, "2 launches of kernels were skipped in this process") == 1);
        CHECK(count_of(said, "cublasLtMatmul: A takes 16384 bytes at ") == 1);
    }
}

TEST_CASE("cuBLASLt: shapes, types and what comes after the multiplication are checked") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Light light(report, "libcublasLt.so.13");
              const char* const set_work = "cublasLtMatmulDescSetAttribute";
              const char* const set_layout = "cublasLtMatrixLayoutSetAttribute";
              EXPECT_EQUAL(light.set(set_layout, light.layout, 3, uint64_t{32}), Status::success);  // 64 x 32
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::invalid_value);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 3, uint64_t{64}), Status::success);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 4, int64_t{63}), Status::success);
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::invalid_value);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 4, int64_t{64}), Status::success);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 1, 2), Status::success);  // CUBLASLT_ORDER_COL32
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::not_supported);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 1, 1), Status::success);
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::success);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 0, 1), Status::success);  // doubles in 32F
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::not_supported);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 0, 28), Status::success);  // 8 bits, on a T4
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::not_supported);
              EXPECT_EQUAL(light.set(set_layout, light.layout, 0, 0), Status::success);
              EXPECT_EQUAL(light.set(set_work, light.work, 7, 4), Status::success);  // CUBLASLT_EPILOGUE_BIAS
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::execution_failed);
              EXPECT_EQUAL(light.set(set_work, light.work, 8, light.matrix), Status::success);
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::success);
              EXPECT_EQUAL(light.set(set_work, light.work, 3, 3), Status::success);
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::invalid_value);
          }) == "");
}

TEST_CASE("cuBLASLt: an attribute has its size, and a descriptor is one of its kind") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Light light(report, "libcublasLt.so.12");
              size_t size = 0;
              int epilogue = 0;
              const auto get = [&](void* descriptor, int attribute, void* to, size_t bytes) {
                  return call(light.library, "cublasLtMatmulDescGetAttribute", descriptor, attribute, to, bytes, &size);
              };
              EXPECT_EQUAL(get(light.work, 7, nullptr, 0), Status::success);
              EXPECT_EQUAL(size, 4u);
              EXPECT_EQUAL(get(light.work, 7, &epilogue, 4), Status::success);
              EXPECT_EQUAL(epilogue, 1);
              EXPECT_EQUAL(get(light.work, 7, &epilogue, 2), Status::invalid_value);
              EXPECT_EQUAL(get(light.work, 9, &epilogue, 4), Status::invalid_value);
              EXPECT_EQUAL(get(light.layout, 7, &epilogue, 4), Status::invalid_value);
              EXPECT_EQUAL(light.set("cublasLtMatmulPreferenceSetAttribute", light.preference, 1, uint64_t{1} << 20),
                           Status::success);
              EXPECT_EQUAL(light.set("cublasLtMatmulPreferenceSetAttribute", light.preference, 1, 1),
                           Status::invalid_value);
              uint64_t small[2]{};
              EXPECT_EQUAL(call(light.library, "cublasLtMatmulDescInit_internal", small, sizeof small, 68, 0),
                           Status::alloc_failed);
              EXPECT_EQUAL(call(light.library, "cublasLtMatrixLayoutDestroy", light.layout), Status::success);
              light.layout = nullptr;
              EXPECT_EQUAL(call(light.library, "cublasLtDestroy", light.handle), Status::success);
              EXPECT_EQUAL(call(light.library, "cublasLtDestroy", light.handle), Status::not_initialized);
          }) == "");
}

TEST_CASE("cuBLASLt: cuBLAS's handle does as well") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Light light(report, "libcublasLt.so.12");
              void* blas = open_library(report, "libcublas.so.12");
              EXPECT_EQUAL(call(blas, "cublasCreate_v2", &light.handle), Status::success);
              EXPECT_EQUAL(light.multiply(nullptr, light.matrix), Status::success);
          }) == "");
}
