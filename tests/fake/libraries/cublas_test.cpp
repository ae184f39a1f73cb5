// SPDX-License-Identifier: Apache-2.0
// cuBLAS: handles take memory, multiplications are checked and skipped, the rest is refused by name.

#include "tests/catch.h"
#include "tests/fake/libraries/library.h"

using namespace fake_test;

namespace {

const std::string kFiles[] = {"libcublas.so.11", "libcublas.so.12", "libcublas.so.13"};

struct Handle {
    void *library, *handle = nullptr;

    Handle(const Report& report, const std::string& file) : library(open_library(report, file)) {
        EXPECT_EQUAL(call(library, "cublasCreate_v2", &handle), Status::success);
    }
};

/// A multiplication of square matrices of floats, all at `matrix`.
Status multiply(const Handle& blas, int size, int ld, CUdeviceptr matrix, int op = 0) {
    const float one = 1;
    return call(blas.library, "cublasSgemm_v2", blas.handle, op, 0, size, size, size, &one, matrix, ld, matrix, ld,
                &one, matrix, ld);
}

CUdeviceptr allocate(const Report& report, size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_EQUAL(cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
    return memory;
}

}  // namespace

TEST_CASE("cuBLAS: a multiplication is checked and skipped, and the process says so at its end") {
    for (const std::string& file : kFiles) {
        std::string said;
        CHECK(in_child(
                  one_t4,
                  [&](const Report& report) {
                      use_device(report);
                      const Handle blas(report, file);
                      const CUdeviceptr matrix = allocate(report, 64 * 64 * 4);
                      EXPECT_EQUAL(cuMemsetD32(matrix, 7, 64 * 64), CUDA_SUCCESS);
                      EXPECT_EQUAL(multiply(blas, 64, 64, matrix), Status::success);
                      EXPECT_EQUAL(multiply(blas, 0, 1, matrix), Status::success);  // nothing to do: no launch
                      unsigned word = 0;
                      EXPECT_EQUAL(cuMemcpyDtoH(&word, matrix, 4), CUDA_SUCCESS);
                      EXPECT_EQUAL(word, 7u);
                      EXPECT_EQUAL(call(blas.library, "cublasDestroy_v2", blas.handle), Status::success);
                      EXPECT_EQUAL(call(blas.library, "cublasDestroy_v2", blas.handle), Status::not_initialized);
                  },
                  &said) == "");
        CHECK(count_of(said, "1 launch of a kernel was skipped in this process: results were not computed") == 1);
    }
}

TEST_CASE("cuBLAS: bad arguments are refused, and nothing is launched") {
    for (const std::string& file : kFiles) {
        std::string said;
        CHECK(in_child(
                  one_t4,
                  [&](const Report& report) {
                      use_device(report);
                      const Handle blas(report, file);
                      const CUdeviceptr matrix = allocate(report, 64 * 64 * 4);
                      EXPECT_EQUAL(multiply(blas, 64, 63, matrix), Status::invalid_value);
                      EXPECT_EQUAL(multiply(blas, -1, 64, matrix), Status::invalid_value);
                      EXPECT_EQUAL(multiply(blas, 64, 64, matrix, 3), Status::invalid_value);
                      EXPECT_EQUAL(multiply(blas, 65, 65, matrix), Status::execution_failed);
                      EXPECT_EQUAL(multiply(blas, 64, 64, 0), Status::execution_failed);
                      Handle other = blas;
                      other.handle = nullptr;
                      EXPECT_EQUAL(multiply(other, 64, 64, matrix), Status::not_initialized);
                      const float one = 1;
                      const void* none = nullptr;
                      EXPECT_EQUAL(call(blas.library, "cublasSgemm_v2", blas.handle, 0, 0, 8, 8, 8, none, matrix, 8,
                                        matrix, 8, &one, matrix, 8),
                                   Status::invalid_value);
                      // 68: CUBLAS_COMPUTE_32F; types 0 and 1: float and double
                      const auto mixed = [&](int ab, int algorithm) {
                          return call(blas.library, "cublasGemmEx", blas.handle, 0, 0, 8, 8, 8, &one, matrix, ab, 8,
                                      matrix, ab, 8, &one, matrix, 0, 8, 68, algorithm);
                      };
                      EXPECT_EQUAL(mixed(1, -1), Status::not_supported);
                      EXPECT_EQUAL(mixed(0, 50), Status::invalid_value);
                      EXPECT_EQUAL(call(blas.library, "cublasSetPointerMode_v2", blas.handle, 2),
                                   Status::invalid_value);
                      EXPECT_EQUAL(call(blas.library, "cublasSetMathMode", blas.handle, 5), Status::invalid_value);
                  },
                  &said) == "");
        CHECK(count_of(said, "skipped in this process") == 0);
        CHECK(count_of(said, "cublasSgemm_v2: A takes 16900 bytes at ") == 1);
    }
}

TEST_CASE("cuBLAS: batches and vectors are checked to their last element") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Handle blas(report, "libcublas.so.13");
              const CUdeviceptr matrix = allocate(report, 4 * 64 * 4);
              const float one = 1;
              const auto strided = [&](long long stride, int count) {
                  return call(blas.library, "cublasSgemmStridedBatched", blas.handle, 0, 0, 8, 8, 8, &one, matrix, 8,
                              stride, matrix, 8, stride, &one, matrix, 8, stride, count);
              };
              EXPECT_EQUAL(strided(64, 4), Status::success);
              EXPECT_EQUAL(strided(64, 5), Status::execution_failed);
              EXPECT_EQUAL(strided(0, 100), Status::success);
              EXPECT_EQUAL(strided(64, -1), Status::invalid_value);
              const auto vector = [&](int x_step) {
                  return call(blas.library, "cublasSgemv_v2", blas.handle, 0, 8, 8, &one, matrix, 8, matrix, x_step,
                              &one, matrix, 1);
              };
              EXPECT_EQUAL(vector(1), Status::success);
              EXPECT_EQUAL(vector(0), Status::invalid_value);
              EXPECT_EQUAL(vector(36), Status::success);
              EXPECT_EQUAL(vector(-37), Status::execution_failed);
              const int64_t m = 8;
              const int64_t huge = int64_t{1} << 62;
              EXPECT_EQUAL(call(blas.library, "cublasSgemm_v2_64", blas.handle, 0, 0, m, m, m, &one, matrix, huge,
                                matrix, m, &one, matrix, m),
                           Status::execution_failed);
          }) == "");
}

TEST_CASE("cuBLAS: a handle takes the documented workspace of the GPU, or is refused") {
    const auto taken = [](const char* gpu) {
        std::string result;
        CHECK(in_child({{"CUSLICE_FAKE", gpu}}, [&](const Report& report) {
                  use_device(report);
                  const Handle first(report, "libcublas.so.12");  // with the module
                  const size_t before = free_bytes();
                  const Handle second(report, "libcublas.so.12");
                  EXPECT_EQUAL(before - free_bytes(), (gpu[0] == 'h' ? 32 : 4) * MiB);
                  EXPECT_EQUAL(call(second.library, "cublasDestroy_v2", second.handle), Status::success);
                  EXPECT_EQUAL(free_bytes(), before);
                  // All but less than a workspace.
                  while (free_bytes() >= 4 * MiB) {
                      CUdeviceptr memory = 0;
                      if (cuMemAlloc(&memory, free_bytes() >= 64 * MiB ? free_bytes() / 2 : 2 * MiB) != CUDA_SUCCESS)
                          break;
                  }
                  void* handle = nullptr;
                  EXPECT_EQUAL(call(first.library, "cublasCreate_v2", &handle), Status::alloc_failed);
                  EXPECT(handle == nullptr);
              }) == "");
    };
    taken("t4");
    taken("h200");
}

TEST_CASE("cuBLAS: a launch follows its stream into a capture, and is refused where kernels are errors") {
    std::string said;
    CHECK(in_child(
              one_t4,
              [](const Report& report) {
                  use_device(report);
                  const Handle blas(report, "libcublas.so.12");
                  const CUdeviceptr matrix = allocate(report, 64 * 64 * 4);
                  CUstream stream = nullptr;
                  CUgraph graph = nullptr;
                  size_t nodes = 0;
                  EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
                  EXPECT_EQUAL(call(blas.library, "cublasSetStream_v2", blas.handle, stream), Status::success);
                  EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
                  EXPECT_EQUAL(multiply(blas, 64, 64, matrix), Status::success);
                  EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
                  EXPECT_EQUAL(nodes, 1u);
              },
              &said) == "");
    CHECK(count_of(said, "skipped in this process") == 0);
    Environment errors = one_t4;
    errors["CUSLICE_FAKE_KERNELS"] = "error";
    CHECK(in_child(errors, [](const Report& report) {
              use_device(report);
              const Handle blas(report, "libcublas.so.12");
              EXPECT_EQUAL(multiply(blas, 64, 64, allocate(report, 64 * 64 * 4)), Status::not_supported);
          }) == "");
}

TEST_CASE("cuBLAS: a handle outlives a reset of its device's context") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Handle blas(report, "libcublas.so.12");
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              use_device(report);  // anew
              EXPECT_EQUAL(multiply(blas, 64, 64, allocate(report, 64 * 64 * 4)), Status::success);
          }) == "");
}

TEST_CASE("cuBLAS: without a context it makes the one of device 0; without a GPU it isn't initialised") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Handle blas(report, "libcublas.so.13");
              CUcontext context = nullptr;
              EXPECT_EQUAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
              EXPECT(context != nullptr);
          }) == "");
    CHECK(in_child({{"CUSLICE_FAKE", ""}}, [](const Report& report) {
              void* library = open_library(report, "libcublas.so.13");
              void* handle = nullptr;
              EXPECT_EQUAL(call(library, "cublasCreate_v2", &handle), Status::not_initialized);
          }) == "");
}
