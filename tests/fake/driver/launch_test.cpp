// SPDX-License-Identifier: Apache-2.0
// Launches are checked as a driver checks them.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

struct Sample {
    CUmodule module = nullptr;
    CUfunction add = nullptr, bounded = nullptr;
    unsigned long long pointer = 0;
    unsigned number = 0;
    char structure[24] = {}, byte = 0;
    void* arguments[5] = {&pointer, &pointer, &number, structure, &byte};

    explicit Sample(const Report& report) {
        EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
        EXPECT_EQUAL(cuModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
        EXPECT_EQUAL(cuModuleGetFunction(&bounded, module, "bounded"), CUDA_SUCCESS);
    }
    CUresult launch(unsigned grid, unsigned block, unsigned shared = 0) {
        return cuLaunchKernel(add, grid, 1, 1, block, 1, 1, shared, nullptr, arguments, nullptr);
    }
};

}  // namespace

TEST_CASE("a good launch succeeds; that kernels are not run is said at the first one and at the end") {
    std::string said;
    CHECK(in_child(
              one_t4,
              [](const Report& report) {
                  use_device(report);
                  Sample sample(report);
                  EXPECT_EQUAL(sample.launch(10, 128), CUDA_SUCCESS);
                  EXPECT_EQUAL(sample.launch(10, 128), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLaunchKernel(sample.bounded, 1, 1, 1, 64, 2, 1, 0, nullptr, nullptr, nullptr),
                               CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              },
              &said) == "");
    CHECK(said ==
          "cuslice fake GPU: kernels are checked, not run: what they would compute is not there "
          "(CUSLICE_FAKE_KERNELS=error refuses them)\n"
          "cuslice fake GPU: 3 launches of kernels were skipped in this process: results were not computed\n");
}

TEST_CASE("a launch takes room for local memory where no kernel before has needed as much") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              constexpr size_t threads = 40 * 1024, lazy_load = 128 << 10;  // of a T4: resident, and a first launch
              const auto launch = [&](int bytes) {
                  const std::string text =
                      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(){.local .align 8 .b8 spot[" +
                      std::to_string(bytes) + "]; ret;}\n";
                  CUmodule module = nullptr;
                  CUfunction kernel = nullptr;
                  EXPECT_EQUAL(cuModuleLoadData(&module, text.c_str()), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&kernel, module, "k"), CUDA_SUCCESS);
                  const size_t before = free_bytes();
                  const CUresult result = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
                  const size_t taken = before - free_bytes();
                  EXPECT_EQUAL(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), result);
                  EXPECT_EQUAL(before - free_bytes(), taken);
                  return std::pair(result, taken);
              };
              const size_t free = free_bytes();
              EXPECT(launch(1024) == std::pair(CUDA_SUCCESS, lazy_load));  // the stack's, which every context has
              EXPECT(launch(1376) == std::pair(CUDA_SUCCESS, 352 * threads + lazy_load));
              EXPECT(launch(1200) == std::pair(CUDA_SUCCESS, lazy_load));
              EXPECT_EQUAL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
              EXPECT(launch(2000) == std::pair(CUDA_SUCCESS, lazy_load));
              EXPECT_EQUAL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024), CUDA_SUCCESS);
              EXPECT(launch(1376) == std::pair(CUDA_SUCCESS, 352 * threads + lazy_load));
              EXPECT(launch(500 << 10).first == CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              use_device(report);
              EXPECT(free_bytes() == free);
          }) == "");
}

TEST_CASE("grid, block, shared memory and limits of the kernel are checked") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Sample sample(report);
              EXPECT_EQUAL(sample.launch(0, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(sample.launch(1, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(sample.launch(1, 1025), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(sample.launch(0x80000000U, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuLaunchKernel(sample.add, 1, 65536, 1, 1, 1, 1, 0, nullptr, sample.arguments, nullptr),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuLaunchKernel(sample.add, 1, 1, 1, 1, 1, 65, 0, nullptr, sample.arguments, nullptr),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuLaunchKernel(sample.bounded, 1, 1, 1, 129, 1, 1, 0, nullptr, nullptr, nullptr),
                           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
              EXPECT_EQUAL(sample.launch(1, 1, (48 << 10) - 256), CUDA_SUCCESS);
              EXPECT_EQUAL(sample.launch(1, 1, (48 << 10) - 255), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuFuncSetAttribute(sample.add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(sample.launch(1, 1, 60 << 10), CUDA_SUCCESS);
              EXPECT_EQUAL(cuFuncSetAttribute(sample.add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65 << 10),
                           CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a cubin's kernel has the registers and memory that it needs, and is given the shared memory that is left") {
    CHECK(in_child({{"CUSLICE_FAKE", "h200"}}, [](const Report& report) {
              use_device(report);
              const std::string cubin = Cubin(90, 8).bytes();
              CUmodule module = nullptr;
              CUfunction kernel = nullptr;
              EXPECT_EQUAL(cuModuleLoadData(&module, cubin.data()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuModuleGetFunction(&kernel, module, "kernel"), CUDA_SUCCESS);
              const auto attribute = [&](CUfunction_attribute which) {
                  int value = -1;
                  EXPECT_EQUAL(cuFuncGetAttribute(&value, which, kernel), CUDA_SUCCESS);
                  return value;
              };
              EXPECT_EQUAL(attribute(CU_FUNC_ATTRIBUTE_NUM_REGS), 18);
              EXPECT_EQUAL(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 512);
              EXPECT_EQUAL(attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 80);
              EXPECT_EQUAL(attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 64);
              unsigned long long one = 0, other = 0;
              void* arguments[] = {&one, &other};
              const auto launch = [&](unsigned shared) {
                  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, shared, nullptr, arguments, nullptr);
              };
              EXPECT_EQUAL(launch((48 << 10) - 512), CUDA_SUCCESS);
              EXPECT_EQUAL(launch((48 << 10) - 511), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("arguments are checked, one by one or as a buffer") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Sample sample(report);
              EXPECT_EQUAL(cuLaunchKernel(sample.add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
                           CUDA_ERROR_INVALID_VALUE);
              void* last = sample.arguments[4];
              sample.arguments[4] = nullptr;
              EXPECT_EQUAL(sample.launch(1, 1), CUDA_ERROR_INVALID_VALUE);
              sample.arguments[4] = last;
              char buffer[49];
              size_t size = sizeof buffer;  // 8 + 8 + 4, aligned to 24, + 24, + 1
              void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                               CU_LAUNCH_PARAM_END};
              EXPECT_EQUAL(cuLaunchKernel(sample.add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchKernel(sample.add, 1, 1, 1, 1, 1, 1, 0, nullptr, sample.arguments, extra),
                           CUDA_ERROR_INVALID_VALUE);
              size = 48;
              EXPECT_EQUAL(cuLaunchKernel(sample.add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
                           CUDA_ERROR_INVALID_VALUE);
              size_t offset = 0, bytes = 0;
              EXPECT_EQUAL(cuFuncGetParamInfo(sample.add, 3, &offset, &bytes), CUDA_SUCCESS);
              EXPECT_EQUAL(offset, size_t{24});
              EXPECT_EQUAL(bytes, size_t{24});
              EXPECT_EQUAL(cuFuncGetParamInfo(sample.add, 5, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a kernel without a parameter list takes what it is given") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              CUfunction function = nullptr;
              EXPECT_EQUAL(
                  cuModuleLoadData(&module,
                                   ".version 8.0\n.target sm_50\n.entry first\n.entry second\n.global .b8 x[12];\n"),
                  CUDA_SUCCESS);
              for (const char* name : {"first", "second"}) {
                  EXPECT_EQUAL(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
              }
              CUdeviceptr x = 0;
              size_t size = 0;
              EXPECT_EQUAL(cuModuleGetGlobal(&x, &size, module, "x"), CUDA_SUCCESS);
              EXPECT_EQUAL(size, size_t{12});
          }) == "");
}

TEST_CASE("the first launch of a function takes memory, which goes back with the module") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t empty = free_bytes();
              Sample sample(report);
              const size_t before = free_bytes();
              EXPECT_EQUAL(sample.launch(1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), size_t{128 << 10});
              EXPECT_EQUAL(sample.launch(1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), size_t{128 << 10});
              EXPECT_EQUAL(cuModuleUnload(sample.module), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), empty);
          }) == "");
}

TEST_CASE("other contexts' functions and streams, too large cooperative grids, and a kernel in its place") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              const CUcontext other = use_device(report, 1);
              CUstream foreign = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&foreign, 0), CUDA_SUCCESS);
              use_device(report, 0);
              Sample sample(report);
              EXPECT_EQUAL(cuLaunchKernel(sample.bounded, 1, 1, 1, 1, 1, 1, 0, foreign, nullptr, nullptr),
                           CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuLaunchCooperativeKernel(sample.bounded, 40, 1, 1, 64, 1, 1, 0, nullptr, nullptr),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchCooperativeKernel(sample.bounded, 40 * 16 + 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr),
                           CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
              CUlibrary library = nullptr;
              CUkernel kernel = nullptr;
              EXPECT_EQUAL(cuLibraryLoadData(&library, sample_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuLibraryGetKernel(&kernel, library, "bounded"), CUDA_SUCCESS);
              EXPECT_EQUAL(
                  cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
                  CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchKernel(sample.bounded, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
                           CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("kernels are refused where that was asked for") {
    CHECK(in_child({{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_KERNELS", "error"}}, [](const Report& report) {
              use_device(report);
              Sample sample(report);
              EXPECT_EQUAL(sample.launch(1, 1), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(sample.launch(1, 0), CUDA_ERROR_INVALID_VALUE);
          }) == "");
    CHECK(in_child({{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_KERNELS", "maybe"}},
                   [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY); }) == "");
}

// The first launch: H200, driver 580.159.04, 2026-11-27.
TEST_CASE("the old way to launch goes by what the function was told before") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Sample sample(report);
              CUstream stream = nullptr;
              EXPECT_EQUAL(cuLaunch(sample.add), CUDA_ERROR_INVALID_VALUE);  // no shape yet
              EXPECT_EQUAL(cuFuncSetBlockShape(sample.add, 8, 1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunch(sample.add), CUDA_SUCCESS);  // whatever its parameters are
              EXPECT_EQUAL(cuParamSetSize(sample.add, 8), CUDA_SUCCESS);
              EXPECT_EQUAL(cuParamSeti(sample.add, 0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuParamSetf(sample.add, 4, 1.5F), CUDA_SUCCESS);
              EXPECT_EQUAL(cuParamSetv(sample.add, 8, &sample.pointer, 8), CUDA_SUCCESS);
              EXPECT_EQUAL(cuParamSetv(sample.add, 8, nullptr, 8), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuParamSetv(sample.add, 4090, &sample.pointer, 8), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuParamSeti(sample.add, -4, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuParamSetSize(sample.add, 4097), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuLaunchGrid(sample.add, 10, 20), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchGrid(sample.add, 0, 20), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuLaunchGrid(sample.add, 10, 65536), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchGridAsync(sample.add, 10, 20, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuFuncSetSharedSize(sample.add, 48 << 10), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunch(sample.add), CUDA_ERROR_INVALID_VALUE);  // with 256 bytes of its own too much
              EXPECT_EQUAL(cuFuncSetSharedSize(sample.add, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuFuncSetBlockShape(sample.add, 1024, 2, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuFuncSetBlockShape(sample.add, 8, 0, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuLaunch(sample.add), CUDA_SUCCESS);  // the shape is what it was
              EXPECT_EQUAL(cuFuncSetBlockShape(sample.bounded, 129, 1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunch(sample.bounded), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
              EXPECT_EQUAL(cuLaunch(nullptr), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuFuncSetBlockShape(nullptr, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}
