// SPDX-License-Identifier: Apache-2.0
// cuBLAS: the functions that there are for each type of matrices and each width of sizes.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/catch.h"
#include "tests/fake/libraries/library.h"

using namespace fake_test;

namespace {

constexpr int kSide = 8;  // of square matrices
constexpr int kCount = 3;
constexpr int kFloat = 0, kDouble = 1, kComputeDouble = 70;  // CUDA_R_32F, CUDA_R_64F, CUBLAS_COMPUTE_64F
// Alpha and beta of any type: no byte is 0, so that A, B and C are all read.
constexpr unsigned char kScalar[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

enum class Batch { none, pointers, strided };

size_t bytes_of(Batch batch, size_t element) {
    const size_t matrix = kSide * kSide * element;
    if (batch == Batch::none)
        return matrix;
    return batch == Batch::strided ? kCount * matrix : kCount * sizeof(void*);
}

/// One function, called for matrices of its type.
struct Function {
    void* library;
    void* handle;
    std::string name;
    Batch batch;

    template <class Integer, class... Types>
    Status gemm(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, Types... types) const {
        const Integer n = kSide;
        const long long stride = kSide * kSide;
        const auto of = [&](auto... arguments) {
            return call(library, name.c_str(), handle, 0, 0, n, n, n, kScalar, arguments...);
        };
        if (batch == Batch::none)
            return of(a, types..., n, b, types..., n, kScalar, c, types..., n);
        const Integer count = kCount;
        if (batch == Batch::pointers)
            return of(a, types..., n, b, types..., n, kScalar, c, types..., n, count);
        return of(a, types..., n, stride, b, types..., n, stride, kScalar, c, types..., n, stride, count);
    }

    /// cublasGemmEx and its batched forms, for one type of A, B and C.
    template <class Integer>
    Status gemm_ex(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, int type, int compute) const {
        const Integer n = kSide;
        const long long stride = kSide * kSide;
        const auto of = [&](auto... arguments) {
            return call(library, name.c_str(), handle, 0, 0, n, n, n, kScalar, arguments..., compute, -1);
        };
        if (batch == Batch::none)
            return of(a, type, n, b, type, n, kScalar, c, type, n);
        const Integer count = kCount;
        if (batch == Batch::pointers)
            return of(a, type, n, b, type, n, kScalar, c, type, n, count);
        return of(a, type, n, stride, b, type, n, stride, kScalar, c, type, n, stride, count);
    }

    template <class Integer>
    Status gemv(CUdeviceptr a, CUdeviceptr x, CUdeviceptr y) const {
        const Integer n = kSide, step = 1;
        return call(library, name.c_str(), handle, 0, n, n, kScalar, a, n, x, step, kScalar, y, step);
    }
};

/// Calls the function with as much memory as it reads, and with a byte less for each operand in turn. What it says of
/// that.
template <class Call>
std::string try_operands(const std::string& name, Batch batch, size_t bytes, size_t vector_bytes,
                         const Call& call_with) {
    std::string said;
    CHECK(in_child(
              one_t4,
              [&](const Report& report) {
                  use_device(report);
                  void* const library = open_library(report, "libcublas.so.13");
                  Function function{library, nullptr, name, batch};
                  EXPECT_EQUAL(call(library, "cublasCreate_v2", &function.handle), Status::success);
                  const auto allocate = [&](size_t size) {
                      CUdeviceptr memory = 0;
                      EXPECT_EQUAL(cuMemAlloc(&memory, size), CUDA_SUCCESS);
                      return memory;
                  };
                  const CUdeviceptr whole = allocate(bytes), cut = allocate(bytes - 1),
                                    cut_vector = allocate(vector_bytes - 1);
                  EXPECT_EQUAL(call_with(function, whole, whole, whole), Status::success);
                  EXPECT_EQUAL(call_with(function, cut, whole, whole), Status::execution_failed);
                  EXPECT_EQUAL(call_with(function, whole, cut_vector, whole), Status::execution_failed);
                  EXPECT_EQUAL(call_with(function, whole, whole, cut_vector), Status::execution_failed);
              },
              &said) == "");
    return said;
}

template <class Call>
void check(const std::string& name, Batch batch, size_t bytes, size_t vector_bytes, const Call& call_with) {
    CAPTURE(name);
    const std::string said = try_operands(name, batch, bytes, vector_bytes, call_with);
    CHECK(count_of(said, name + ": A takes " + std::to_string(bytes) + " bytes at ") == 1);
    CHECK(count_of(said, "1 launch of a kernel was skipped in this process") == 1);
}

struct Type {
    std::string letter, version;
    size_t bytes;
};
const Type kTypes[] = {{"S", "_v2", 4}, {"D", "_v2", 8}, {"C", "_v2", 8}, {"Z", "_v2", 16}, {"H", "", 2}};

struct Form {
    Batch batch;
    std::string name;
};
const Form kForms[] = {{Batch::none, ""}, {Batch::pointers, "Batched"}, {Batch::strided, "StridedBatched"}};

}  // namespace

TEST_CASE("cuBLAS: each type's multiplication reads matrices of that type, in sizes of both widths") {
    for (const Type& type : kTypes) {
        for (const Form& form : kForms) {
            const std::string name =
                "cublas" + type.letter + "gemm" + (form.batch == Batch::none ? type.version : form.name);
            const size_t bytes = bytes_of(form.batch, type.bytes);
            const auto narrow = [](const Function& function, auto... at) { return function.gemm<int>(at...); };
            const auto wide = [](const Function& function, auto... at) { return function.gemm<int64_t>(at...); };
            check(name, form.batch, bytes, bytes, narrow);
            check(name + "_64", form.batch, bytes, bytes, wide);
        }
    }
}

TEST_CASE("cuBLAS: a multiplication whose types are arguments reads matrices of those, in sizes of both widths") {
    for (const Form& form : kForms) {
        const std::string name = form.batch == Batch::none ? "cublasGemmEx" : "cublasGemm" + form.name + "Ex";
        const size_t bytes = bytes_of(form.batch, sizeof(double));
        check(name, form.batch, bytes, bytes, [](const Function& function, auto... at) {
            return function.gemm_ex<int>(at..., kDouble, kComputeDouble);
        });
        check(name + "_64", form.batch, bytes, bytes, [](const Function& function, auto... at) {
            return function.gemm_ex<int64_t>(at..., kDouble, kComputeDouble);
        });
    }
    const size_t bytes = bytes_of(Batch::none, sizeof(float));
    check("cublasSgemmEx", Batch::none, bytes, bytes,
          [](const Function& function, auto... at) { return function.gemm<int>(at..., kFloat); });
    check("cublasSgemmEx_64", Batch::none, bytes, bytes,
          [](const Function& function, auto... at) { return function.gemm<int64_t>(at..., kFloat); });
}

TEST_CASE("cuBLAS: each type's product with a vector reads vectors of that type, in sizes of both widths") {
    for (const Type& type : kTypes) {
        if (type.letter == "H")
            continue;  // cuBLAS has it in batches alone
        const std::string name = "cublas" + type.letter + "gemv_v2";
        const size_t bytes = bytes_of(Batch::none, type.bytes), vector_bytes = kSide * type.bytes;
        const auto narrow = [](const Function& function, auto... at) { return function.gemv<int>(at...); };
        const auto wide = [](const Function& function, auto... at) { return function.gemv<int64_t>(at...); };
        check(name, Batch::none, bytes, vector_bytes, narrow);
        check(name + "_64", Batch::none, bytes, vector_bytes, wide);
    }
}
