// SPDX-License-Identifier: Apache-2.0
// How many blocks and clusters fit on a GPU.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

constexpr int KiB = 1024;
inline const Environment one_h200 = {{"CUSLICE_FAKE", "h200"}};

/// A kernel that takes nothing but its threads.
constexpr const char* plain_ptx =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry plain()\n{\n    ret;\n}\n";

CUfunction function_of(const Report& report, const char* ptx, const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQUAL(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    EXPECT_EQUAL(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
}

/// Blocks on one multiprocessor; -1 where the driver refuses to say.
int blocks_of(CUfunction function, int threads, int dynamic_shared) {
    int blocks = -1;
    const auto shared = static_cast<size_t>(dynamic_shared);
    const CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared);
    return result == CUDA_SUCCESS ? blocks : -1;
}

/// A launch of 8 blocks of 128 threads in clusters of so many.
struct Clustered {
    explicit Clustered(unsigned size) {
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim = {size, 1, 1};
        config.gridDimX = 8;
        config.blockDimX = 128;
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.attrs = &attribute;
        config.numAttrs = 1;
    }
    Clustered(const Clustered&) = delete;
    CUlaunchAttribute attribute{};
    CUlaunchConfig config{};
};

}  // namespace

TEST_CASE("occupancy follows from the limits of the architecture") {
    CHECK(in_child({{"CUSLICE_FAKE", "a100-40g"}}, [](const Report& report) {
              use_device(report);
              const CUfunction add = function_of(report, sample_ptx, "add");
              int blocks = 0, grid = 0, block = 0;
              size_t bytes = 0;
              EXPECT_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 128, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(blocks, 16);  // 2048 threads
              EXPECT_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 32, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(blocks, 32);
              EXPECT_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 128, 40 << 10), CUDA_SUCCESS);
              EXPECT_EQUAL(blocks, 3);  // 164 KiB shared
              EXPECT_EQUAL(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, nullptr, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(block, 1024);
              EXPECT_EQUAL(grid, 2 * 108);
              // The program's own function may call the driver.
              const auto shared_of = [](int threads) {
                  CUdevice device = 0;
                  size_t limit = 0;
                  cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE);
                  cuCtxGetDevice(&device);
                  return static_cast<size_t>(threads) * 100;
              };
              EXPECT_EQUAL(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, shared_of, 0, 0), CUDA_SUCCESS);
              EXPECT(block < 1024);
              EXPECT_EQUAL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, add, 2, 128), CUDA_SUCCESS);
              EXPECT_EQUAL(bytes, size_t{(82 << 10) - 256});
              EXPECT_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 0, 0), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

// H200, driver 580.159.04, 2026-11-27.
TEST_CASE("a block gets no more dynamic shared memory than its kernel is allowed") {
    CHECK(in_child(one_h200, [](const Report& report) {
              use_device(report);
              const CUfunction plain = function_of(report, plain_ptx, "plain");
              const auto allow = [&](int bytes) {
                  return cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
              };
              int grid = 0, block = 0;
              size_t bytes = 9;
              EXPECT_EQUAL(blocks_of(plain, 128, 0), 16);
              EXPECT_EQUAL(blocks_of(plain, 128, 32 * KiB), 6);
              EXPECT_EQUAL(blocks_of(plain, 128, 48 * KiB), 4);
              for (const int more : {49, 64, 100, 200, 227, 228, 300})
                  EXPECT_EQUAL(blocks_of(plain, 128, more * KiB), 0);
              EXPECT_EQUAL(allow(200 * KiB), CUDA_SUCCESS);
              EXPECT_EQUAL(blocks_of(plain, 128, 48 * KiB), 4);
              EXPECT_EQUAL(blocks_of(plain, 128, 64 * KiB), 3);
              EXPECT_EQUAL(blocks_of(plain, 128, 200 * KiB), 1);
              for (const int more : {201, 227, 228})
                  EXPECT_EQUAL(blocks_of(plain, 128, more * KiB), 0);
              EXPECT_EQUAL(allow(228 * KiB), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(allow(227 * KiB), CUDA_SUCCESS);
              EXPECT_EQUAL(blocks_of(plain, 1, 0), 32);
              EXPECT_EQUAL(blocks_of(plain, 32, 0), 32);
              EXPECT_EQUAL(blocks_of(plain, 256, 0), 8);
              EXPECT_EQUAL(blocks_of(plain, 1024, 0), 2);
              EXPECT_EQUAL(blocks_of(plain, 1025, 0), 0);
              for (const int threads : {1, 32, 128, 256, 1024}) {
                  EXPECT_EQUAL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 2, threads), CUDA_SUCCESS);
                  EXPECT_EQUAL(bytes, size_t{116736});
              }
              bytes = 9;
              EXPECT_EQUAL(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 2, 1025), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bytes, size_t{9});
              EXPECT_EQUAL(cuOccupancyMaxPotentialBlockSize(&grid, &block, plain, nullptr, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(grid, 264);
              EXPECT_EQUAL(block, 1024);
          }) == "");
}

// The figures of clusters of 2: H200, driver 580.159.04, 2026-11-27.
TEST_CASE("a GPU says how many clusters it can run, and how large they can be") {
    CHECK(in_child(one_h200, [](const Report& report) {
              use_device(report);
              const CUfunction plain = function_of(report, plain_ptx, "plain");
              const auto clusters_of = [&](const CUlaunchConfig& config) {
                  int clusters = -1;
                  const CUresult result = cuOccupancyMaxActiveClusters(&clusters, plain, &config);
                  return result == CUDA_SUCCESS ? clusters : -static_cast<int>(result);
              };
              Clustered two(2), three(3), eight(8), sixteen(16);
              int size = 0, clusters = 0;
              EXPECT_EQUAL(clusters_of(two.config), 528);
              two.config.blockDimX = 1024;
              EXPECT_EQUAL(clusters_of(two.config), 132);
              two.config.blockDimX = 1025;
              EXPECT_EQUAL(clusters_of(two.config), 0);
              two.config.blockDimX = 128;
              two.config.sharedMemBytes = 49 * KiB;
              EXPECT_EQUAL(clusters_of(two.config), 0);
              two.config.sharedMemBytes = 0;
              EXPECT_EQUAL(clusters_of(eight.config), 128);
              EXPECT_EQUAL(clusters_of(three.config), -int{CUDA_ERROR_INVALID_CLUSTER_SIZE});
              sixteen.config.gridDimX = 16;
              EXPECT_EQUAL(clusters_of(sixteen.config), -int{CUDA_ERROR_INVALID_CLUSTER_SIZE});
              two.config.numAttrs = 0;
              EXPECT_EQUAL(cuOccupancyMaxPotentialClusterSize(&size, plain, &two.config), CUDA_SUCCESS);
              EXPECT_EQUAL(size, 8);
              EXPECT_EQUAL(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuOccupancyMaxPotentialClusterSize(&size, plain, &two.config), CUDA_SUCCESS);
              EXPECT_EQUAL(size, 16);
              EXPECT_EQUAL(clusters_of(sixteen.config), 64);
              EXPECT_EQUAL(cuOccupancyMaxActiveClusters(nullptr, plain, &two.config), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuOccupancyMaxActiveClusters(&clusters, plain, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuOccupancyMaxPotentialClusterSize(&size, nullptr, &two.config), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("a GPU without clusters refuses to count them, by name") {
    std::string said;
    CHECK(in_child(
              {{"CUSLICE_FAKE", "l4"}},
              [](const Report& report) {
                  use_device(report);
                  const CUfunction add = function_of(report, sample_ptx, "add");
                  const Clustered two(2);
                  int number = 9;
                  EXPECT_EQUAL(cuOccupancyMaxActiveClusters(&number, add, &two.config), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuOccupancyMaxPotentialClusterSize(&number, add, &two.config), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(number, 9);
              },
              &said) == "");
    CHECK(said ==
          "cuslice fake GPU: cuOccupancyMaxActiveClusters before compute capability 9.0 is not supported\n"
          "cuslice fake GPU: cuOccupancyMaxPotentialClusterSize before compute capability 9.0 is not supported\n");
}
