// SPDX-License-Identifier: Apache-2.0
// Modules and libraries: what is in them, what they cost.

#include <cstring>
#include <fstream>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/packed_image.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

TEST_CASE("a module's kernels and variables are found by name, and its cost goes back with it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUmodule module = nullptr;
              CUfunction add = nullptr, same = nullptr, none = nullptr;
              CUdeviceptr counter = 0, table = 0;
              size_t size = 0;
              EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), 2 * MiB + 4 * 512);  // module and four variables
              EXPECT_EQUAL(cuModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
              EXPECT_EQUAL(cuModuleGetFunction(&same, module, "add"), CUDA_SUCCESS);
              EXPECT(add == same);
              EXPECT_EQUAL(cuModuleGetFunction(&none, module, "subtract"), CUDA_ERROR_NOT_FOUND);
              EXPECT_EQUAL(cuModuleGetGlobal(&counter, &size, module, "counter"), CUDA_SUCCESS);
              EXPECT_EQUAL(size, size_t{4});
              unsigned value = 0;
              EXPECT_EQUAL(cuMemcpyDtoH(&value, counter, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 7U);
              EXPECT_EQUAL(cuModuleGetGlobal(&table, &size, module, "table"), CUDA_SUCCESS);
              EXPECT_EQUAL(size, size_t{20});
              float numbers[5];
              EXPECT_EQUAL(cuMemcpyDtoH(numbers, table, 20), CUDA_SUCCESS);
              EXPECT_EQUAL(numbers[4], 5.0f);
              EXPECT_EQUAL(cuModuleGetGlobal(&table, &size, module, "zeros"), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(table), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuModuleGetGlobal(&table, &size, module, "nothing"), CUDA_ERROR_NOT_FOUND);
              EXPECT_EQUAL(cuModuleUnload(module), CUDA_SUCCESS);
              EXPECT_EQUAL(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(free_bytes(), before);
              int attribute = 0;
              EXPECT_EQUAL(cuFuncGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_NUM_REGS, add), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("a managed variable can be touched by the host") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              CUdeviceptr managed = 0;
              size_t size = 0;
              EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
              EXPECT_EQUAL(cuModuleGetGlobal(&managed, &size, module, "mg"), CUDA_SUCCESS);
              EXPECT_EQUAL(*reinterpret_cast<unsigned*>(managed), 3U);
          }) == "");
}

TEST_CASE("what is no image, or one for other devices, is refused") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g"}}, [](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              const unsigned char noise[64] = {0x93, 0x12, 0xfe};
              EXPECT_EQUAL(cuModuleLoadData(&module, noise), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(cuModuleLoadData(&module, "hello"), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(
                  cuModuleLoadData(&module, ".version 8.0\n.target sm_50\n.visible .entry f(.param .nonsense x) {}"),
                  CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_ERROR_NO_BINARY_FOR_GPU);  // sm_75 on 5.0
              EXPECT_EQUAL(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuModuleLoad(&module, "/no/such/file"), CUDA_ERROR_FILE_NOT_FOUND);
          }) == "");
}

TEST_CASE("a module that doesn't fit leaves nothing behind") {
    CHECK(in_child({{"CUSLICE_FAKE", "t4"}}, [](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              CUdeviceptr most = 0;
              EXPECT_EQUAL(cuMemAlloc(&most, free_bytes() - 2 * MiB - 512),
                           CUDA_SUCCESS);  // room for the first variable alone
              EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(free_bytes(), 2 * MiB + 512);
          }) == "");
}

TEST_CASE("a file is loaded as the same bytes in memory are") {
    const Folder folder;
    const std::string path = folder.path() + "/sample.ptx";
    std::ofstream(path) << sample_ptx;
    CHECK(in_child(one_t4, [&](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              unsigned count = 0;
              EXPECT_EQUAL(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
              EXPECT_EQUAL(count, 2U);
          }) == "");
}

TEST_CASE("a library is loaded into each context at its first use there") {
    CHECK(in_child({{"CUSLICE_FAKE", "2xt4"}}, [](const Report& report) {
              const CUcontext second = use_device(report, 1);
              const CUcontext first = use_device(report, 0);
              const size_t before = free_bytes();
              CUlibrary library = nullptr;
              CUkernel kernel = nullptr;
              CUfunction function = nullptr, elsewhere = nullptr;
              EXPECT_EQUAL(cuLibraryLoadData(&library, sample_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuLibraryGetKernel(&kernel, library, "add"), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
              EXPECT(free_bytes() < before);
              EXPECT_EQUAL(cuCtxSetCurrent(second), CUDA_SUCCESS);
              EXPECT_EQUAL(cuKernelGetFunction(&elsewhere, kernel), CUDA_SUCCESS);
              EXPECT(function != elsewhere);
              const char* name = nullptr;
              EXPECT_EQUAL(cuKernelGetName(nullptr, kernel), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuKernelGetName(&name, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuKernelGetName(&name, kernel), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(name), "add");
              EXPECT_EQUAL(cuCtxSetCurrent(first), CUDA_SUCCESS);
              CUdeviceptr counter = 0;
              size_t size = 0;
              EXPECT_EQUAL(cuLibraryGetGlobal(&counter, &size, library, "counter"), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLibraryGetManaged(&counter, &size, library, "mg"), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLibraryGetGlobal(&counter, &size, library, "mg"), CUDA_ERROR_NOT_FOUND);
              EXPECT_EQUAL(cuLibraryUnload(library), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), before);
              EXPECT_EQUAL(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

// H200, driver 580.159.04, 2026-11-27: of PTX, and of a cubin from PTX of its own capability.
TEST_CASE("a function's versions are its code's") {
    CHECK(in_child({{"CUSLICE_FAKE", "h200"}}, [](const Report& report) {
              use_device(report);
              const auto versions = [&](const void* image, const char* name) {
                  CUmodule module = nullptr;
                  CUfunction function = nullptr;
                  int ptx = 0, binary = 0;
                  EXPECT_EQUAL(cuModuleLoadData(&module, image), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuFuncGetAttribute(&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, function), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuFuncGetAttribute(&binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function), CUDA_SUCCESS);
                  return ptx * 1000 + binary;
              };
              PackedImage packed;
              EXPECT_EQUAL(versions(sample_ptx, "add"), 75090);
              EXPECT_EQUAL(versions(Cubin(90, 8, 90).bytes().data(), "kernel"), 90090);
              EXPECT_EQUAL(versions(Cubin(90, 8, 80).bytes().data(), "kernel"), 80090);
              EXPECT_EQUAL(versions(Cubin(90, 8).bytes().data(), "kernel"), 90090);
              EXPECT_EQUAL(versions(&packed, "any"), 50090);
              CUmodule module = nullptr;
              EXPECT_EQUAL(cuModuleLoadData(&module, Cubin(86, 8).bytes().data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
          }) == "");
}

TEST_CASE("of an image that can't be read any name is a kernel's, whose launches are skipped and said") {
    PackedImage packed;
    std::string said;
    CHECK(in_child(
              one_t4,
              [&](const Report& report) {
                  use_device(report);
                  CUmodule module = nullptr;
                  CUfunction function = nullptr, again = nullptr, other = nullptr;
                  EXPECT_EQUAL(cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&function, module, "first"), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&again, module, "first"), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&other, module, "second"), CUDA_SUCCESS);
                  EXPECT(function == again && function != other);
                  EXPECT_EQUAL(cuModuleGetFunction(&other, module, ""), CUDA_ERROR_NOT_FOUND);
                  const char* name = nullptr;
                  EXPECT_EQUAL(cuFuncGetName(nullptr, function), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuFuncGetName(&name, nullptr), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuFuncGetName(&name, function), CUDA_SUCCESS);
                  EXPECT(name != nullptr && std::string(name) == "first");
                  int value = 0;
                  EXPECT_EQUAL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function), CUDA_SUCCESS);
                  EXPECT_EQUAL(value, 75);
                  EXPECT_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 128, 0), CUDA_SUCCESS);
                  EXPECT(value > 0);
                  // A launch is checked as far as that is possible without knowing the kernel's parameters.
                  const auto launch = [&](unsigned grid, unsigned block) {
                      return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, nullptr, nullptr);
                  };
                  EXPECT_EQUAL(launch(1, 1025), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(launch(0, 1), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(launch(1, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(launch(1, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLaunchCooperativeKernel(other, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLaunchCooperativeKernel(other, 1 << 20, 1, 1, 1, 1, 1, 0, nullptr, nullptr),
                               CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
                  EXPECT_EQUAL(cuModuleUnload(module), CUDA_SUCCESS);
                  EXPECT_EQUAL(launch(1, 1), CUDA_ERROR_INVALID_HANDLE);
                  packed.capability = 90;
                  EXPECT_EQUAL(cuModuleLoadData(&module, &packed), CUDA_ERROR_NO_BINARY_FOR_GPU);
              },
              &said) == "");
    CHECK(said ==
          "cuslice fake GPU: kernels are checked, not run: what they would compute is not there "
          "(CUSLICE_FAKE_KERNELS=error refuses them)\n"
          "cuslice fake GPU: kernel 'first' is launched from a fat binary whose parts are all compressed, which the "
          "fake GPU can't read: any name is taken for a kernel there, and its parameters aren't checked\n"
          "cuslice fake GPU: 3 launches of kernels were skipped in this process: results were not computed\n");
}

TEST_CASE("what can't be known of an image that can't be read is refused by name") {
    PackedImage packed;
    std::string said;
    CHECK(in_child(
              one_t4,
              [&](const Report& report) {
                  use_device(report);
                  CUmodule module = nullptr;
                  CUfunction function = nullptr;
                  CUdeviceptr address = 0;
                  size_t size = 0;
                  unsigned count = 7;
                  EXPECT_EQUAL(cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&function, module, "first"), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetGlobal(&address, &size, module, "answer"), CUDA_ERROR_NOT_FOUND);
                  EXPECT_EQUAL(cuModuleGetGlobal(&address, &size, module, "other"), CUDA_ERROR_NOT_FOUND);
                  EXPECT_EQUAL(cuModuleGetFunctionCount(&count, module), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuModuleEnumerateFunctions(&function, 1, module), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuFuncGetParamInfo(function, 0, &size, nullptr), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(count, 7U);
              },
              &said) == "");
    CHECK(said ==
          "cuslice fake GPU: variable 'answer' was asked for in a fat binary whose parts are all compressed, which the "
          "fake GPU can't read: it has none; build with nvcc --no-compress, or load PTX\n"
          "cuslice fake GPU: cuModuleGetFunctionCount of an image that can't be read is not supported\n"
          "cuslice fake GPU: cuModuleEnumerateFunctions of an image that can't be read is not supported\n"
          "cuslice fake GPU: looking into the parameters of a kernel that can't be read is not supported\n");
}

TEST_CASE("a library that can't be read has any kernel, also as a node of a graph") {
    PackedImage packed;
    std::string said;
    CHECK(in_child(
              one_t4,
              [&](const Report& report) {
                  const CUcontext context = use_device(report);
                  CUlibrary library = nullptr;
                  CUkernel kernel = nullptr;
                  unsigned count = 0;
                  int value = 0;
                  EXPECT_EQUAL(cuLibraryLoadData(&library, &packed, nullptr, nullptr, 0, nullptr, nullptr, 0),
                               CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLibraryGetKernel(&kernel, library, "any"), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLibraryGetKernelCount(&count, library), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuLibraryEnumerateKernels(&kernel, 1, library), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0), CUDA_SUCCESS);
                  CUgraph graph = nullptr;
                  CUgraphNode node = nullptr;
                  CUgraphExec exec = nullptr;
                  CUDA_KERNEL_NODE_PARAMS_v2 params{};
                  params.kern = kernel;
                  params.ctx = context;
                  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
                  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
                  EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
                  for (int i = 0; i < 2; i++)
                      EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              },
              &said) == "");
    CHECK(said.find("kernel 'any' is launched from a fat binary whose parts are all compressed") != said.npos);
    // A node is counted as often as it is launched.
    CHECK(said.find("cuslice fake GPU: 2 launches of kernels were skipped in this process") != said.npos);
}

TEST_CASE("where kernels are errors, those of an image that can't be read are too") {
    PackedImage packed;
    std::string said;
    CHECK(in_child(
              {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_KERNELS", "error"}},
              [&](const Report& report) {
                  use_device(report);
                  CUmodule module = nullptr;
                  CUfunction function = nullptr;
                  EXPECT_EQUAL(cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuModuleGetFunction(&function, module, "first"), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
                               CUDA_ERROR_NOT_SUPPORTED);
              },
              &said) == "");
    CHECK(said.find("skipped") == said.npos);
}

namespace {

/// Log buffers as programs give them, filled with what must not be left there.
struct Logs {
    char info[64], error[64];
    CUjit_option options[4] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                               CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[4] = {info, reinterpret_cast<void*>(sizeof info), error, reinterpret_cast<void*>(sizeof error)};

    explicit Logs(size_t room = sizeof error) {
        std::memset(info, 'x', sizeof info);
        std::memset(error, 'x', sizeof error);
        values[3] = reinterpret_cast<void*>(room);
    }
    size_t info_size() const { return reinterpret_cast<size_t>(values[1]); }
    size_t error_size() const { return reinterpret_cast<size_t>(values[3]); }
};

constexpr const char* nonsense = ".version 8.0\n.target sm_50\nnonsense\n";
constexpr const char* complaint = "line 3: 'nonsense': not expected here";

}  // namespace

TEST_CASE("a compiler's logs are written, empty or with the fault and its line") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              CUlibrary library = nullptr;
              CUlinkState link = nullptr;
              Logs good;
              EXPECT_EQUAL(cuModuleLoadDataEx(&module, sample_ptx, 4, good.options, good.values), CUDA_SUCCESS);
              EXPECT_EQUAL(std::string(good.info, 1), std::string(1, '\0'));
              EXPECT_EQUAL(std::string(good.error, 1), std::string(1, '\0'));
              EXPECT_EQUAL(good.info_size(), size_t{0});
              EXPECT_EQUAL(good.error_size(), size_t{0});
              Logs bad, cut(10), in_library, in_link;
              EXPECT_EQUAL(cuModuleLoadDataEx(&module, nonsense, 4, bad.options, bad.values), CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(std::string(bad.error, std::strlen(complaint) + 1), std::string(complaint) + '\0');
              EXPECT_EQUAL(bad.error_size(), std::strlen(complaint));
              EXPECT_EQUAL(cuModuleLoadDataEx(&module, nonsense, 4, cut.options, cut.values), CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(std::string(cut.error, 11), std::string("line 3: '") + std::string("\0x", 2));
              EXPECT_EQUAL(cut.error_size(), size_t{9});
              EXPECT_EQUAL(
                  cuLibraryLoadData(&library, nonsense, in_library.options, in_library.values, 4, nullptr, nullptr, 0),
                  CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(in_library.error_size(), std::strlen(complaint));
              EXPECT_EQUAL(cuLinkCreate(4, in_link.options, in_link.values, &link), CUDA_SUCCESS);
              EXPECT_EQUAL(in_link.error_size(), size_t{0});
              EXPECT_EQUAL(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(nonsense), std::strlen(nonsense),
                                         "n", 0, nullptr, nullptr),
                           CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(std::string(in_link.error, std::strlen(complaint)), std::string(complaint));
              CUjit_option unknown = CU_JIT_NUM_OPTIONS;
              void* value = nullptr;
              EXPECT_EQUAL(cuModuleLoadDataEx(&module, sample_ptx, 1, &unknown, &value), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
