// SPDX-License-Identifier: Apache-2.0
// Occupancy: from the architecture's limits and what the kernel takes.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/module.h"
#include "fake/driver/occupancy.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// Registers are handed out to warps in units of 256.
constexpr int kRegisterUnit = 256;

constexpr unsigned kAllFlags = CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;

struct Asked {
    Context* context = nullptr;
    Function* function = nullptr;
};

/// The function and its context; the driver's lock is held.
CUresult find(CUfunction handle, Asked& asked) {
    CUSLICE_TRY(current_context(asked.context));
    return launchable(handle, *asked.context, asked.function);
}

/// Blocks on one multiprocessor with no more dynamic shared memory than the function is allowed; the driver's lock is
/// held.
int blocks_of(const Asked& asked, int threads, size_t shared) {
    if (shared > static_cast<size_t>(asked.function->dynamic_shared))
        return 0;
    return blocks_per_multiprocessor(*asked.function->info, asked.context->gpu->spec, threads, shared);
}

CUresult active_blocks(int* blocks, CUfunction handle, int threads, size_t shared, unsigned flags) {
    Asked asked;
    if (blocks == nullptr || threads <= 0 || (flags & ~kAllFlags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_TRY(find(handle, asked));
    *blocks = blocks_of(asked, threads, shared);
    return CUDA_SUCCESS;
}

/// The block size with the most threads at work, the largest of equals.
CUresult best_block(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of, size_t shared, int limit,
                    unsigned flags) {
    Asked asked;
    if (grid == nullptr || block == nullptr || (flags & ~kAllFlags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    // Both stay while the program's function runs without the lock.
    std::shared_ptr<const KernelInfo> info;
    size_t allowed = 0;
    {
        const DriverLock hold;
        CUSLICE_TRY(find(handle, asked));
        info = asked.function->info;
        allowed = static_cast<size_t>(asked.function->dynamic_shared);
    }
    const GpuSpec& gpu = asked.context->gpu->spec;
    const KernelInfo& kernel = *info;
    const int most = limit > 0 ? std::min(limit, kernel.max_threads) : kernel.max_threads;
    int best_threads = 0, best = 0, best_blocks = 0;
    for (int threads = round_up(most, kWarpSize); threads > 0; threads -= kWarpSize) {
        const int size = std::min(threads, most);
        const size_t wanted = shared_of != nullptr ? shared_of(size) : shared;
        const int blocks = wanted > allowed ? 0 : blocks_per_multiprocessor(kernel, gpu, size, wanted);
        if (blocks * size <= best_threads)
            continue;
        best_threads = blocks * size;
        best = size;
        best_blocks = blocks;
    }
    *block = best;
    *grid = best_blocks * static_cast<int>(gpu.multiprocessors);
    return CUDA_SUCCESS;
}

/// So many blocks of a cluster can be on one multiprocessor, however many others are: the only rule that the figure of
/// an H200 (driver 580.159.04, 2026-11-27) is known to follow, of 8 blocks of 128 threads in clusters of 2.
constexpr int kMostClusteredBlocks = 8;
constexpr unsigned kPortableCluster = 8, kLargestCluster = 16;

/// The cluster that a configuration asks for; one block where it asks for none.
CUresult cluster_of(const CUlaunchConfig& config, const Function& function, int& size) {
    if (config.numAttrs > 0 && config.attrs == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t blocks = 1;
    for (unsigned i = 0; i < config.numAttrs; i++) {
        if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        const auto& cluster = config.attrs[i].value.clusterDim;
        if (!divides_grid(config, config.attrs[i]))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        blocks = uint64_t{cluster.x} * cluster.y * cluster.z;
    }
    if (blocks > (function.non_portable_cluster ? kLargestCluster : kPortableCluster))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    size = static_cast<int>(blocks);
    return CUDA_SUCCESS;
}

/// Blocks of this configuration on one multiprocessor; the driver's lock is held.
CUresult configured_blocks(const CUlaunchConfig& config, const Asked& asked, int& blocks) {
    const unsigned sides[] = {config.gridDimX,  config.gridDimY,  config.gridDimZ,
                              config.blockDimX, config.blockDimY, config.blockDimZ};
    if (std::find(std::begin(sides), std::end(sides), 0U) != std::end(sides))
        return CUDA_ERROR_INVALID_VALUE;
    const bool flat = config.blockDimY <= kMaxBlock[1] && config.blockDimZ <= kMaxBlock[2];
    const uint64_t threads = uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
    const bool small = flat && config.blockDimX <= kMaxBlock[0] && threads <= kMaxThreadsPerBlock;
    blocks = small ? blocks_of(asked, static_cast<int>(threads), config.sharedMemBytes) : 0;
    return CUDA_SUCCESS;
}

bool has_clusters(const Asked& asked) { return asked.context->gpu->spec.major >= 9; }

}  // namespace

namespace cuslice::fake {

bool divides_grid(const CUlaunchConfig& config, const CUlaunchAttribute& attribute) {
    const auto& cluster = attribute.value.clusterDim;
    const bool whole = cluster.x != 0 && cluster.y != 0 && cluster.z != 0;
    return whole && config.gridDimX % cluster.x == 0 && config.gridDimY % cluster.y == 0 &&
           config.gridDimZ % cluster.z == 0;
}

int blocks_per_multiprocessor(const KernelInfo& kernel, const GpuSpec& gpu, int threads, size_t dynamic_shared) {
    const Architecture& arch = architecture_of(gpu);
    if (threads > kernel.max_threads)
        return 0;
    const int warps = (threads + kWarpSize - 1) / kWarpSize;
    const size_t shared =
        static_cast<size_t>(kernel.shared_bytes) + dynamic_shared + (gpu.major >= 8 ? kReservedShared : 0);
    const auto room = static_cast<size_t>(arch.shared_per_multiprocessor);
    if (static_cast<size_t>(kernel.shared_bytes) + dynamic_shared > static_cast<size_t>(arch.shared_per_block_optin))
        return 0;
    const int per_warp = round_up(std::max(kernel.registers, 1) * kWarpSize, kRegisterUnit);
    int blocks = std::min(arch.blocks_per_multiprocessor, arch.threads_per_multiprocessor / (warps * kWarpSize));
    blocks = std::min(blocks, arch.registers_per_multiprocessor / (per_warp * warps));
    if (shared > 0)
        blocks = std::min(blocks, static_cast<int>(room / shared));
    return blocks;
}

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, function, threads, shared) {
    return active_blocks(blocks, function, threads, shared, 0);
}

CUSLICE_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, function, threads, shared, flags) {
    return active_blocks(blocks, function, threads, shared, flags);
}

CUSLICE_ENTRY(cuOccupancyMaxPotentialBlockSize, grid, block, function, shared_of, shared, limit) {
    return best_block(grid, block, function, shared_of, shared, limit, 0);
}

CUSLICE_ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags, grid, block, function, shared_of, shared, limit, flags) {
    return best_block(grid, block, function, shared_of, shared, limit, flags);
}

CUSLICE_ENTRY(cuOccupancyMaxActiveClusters, clusters, handle, config) {
    Asked asked;
    if (clusters == nullptr || config == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_TRY(find(handle, asked));
    if (!has_clusters(asked))
        CUSLICE_UNSUPPORTED("cuOccupancyMaxActiveClusters before compute capability 9.0");
    int size = 0, blocks = 0;
    CUSLICE_TRY(cluster_of(*config, *asked.function, size));
    CUSLICE_TRY(configured_blocks(*config, asked, blocks));
    // Each of a cluster's blocks on a multiprocessor of its own. Which ones share a GPC isn't known here.
    *clusters =
        static_cast<int>(asked.context->gpu->spec.multiprocessors) / size * std::min(blocks, kMostClusteredBlocks);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuOccupancyMaxPotentialClusterSize, size, handle, config) {
    Asked asked;
    if (size == nullptr || config == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_TRY(find(handle, asked));
    if (!has_clusters(asked))
        CUSLICE_UNSUPPORTED("cuOccupancyMaxPotentialClusterSize before compute capability 9.0");
    int blocks = 0;
    CUSLICE_TRY(configured_blocks(*config, asked, blocks));
    const unsigned most = asked.function->non_portable_cluster ? kLargestCluster : kPortableCluster;
    *size = blocks == 0
                ? 0
                : static_cast<int>(std::min(most, static_cast<unsigned>(asked.context->gpu->spec.multiprocessors)));
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, bytes, handle, blocks, threads) {
    Asked asked;
    if (bytes == nullptr || blocks <= 0 || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_TRY(find(handle, asked));
    const GpuSpec& gpu = asked.context->gpu->spec;
    const KernelInfo& kernel = *asked.function->info;
    if (blocks_per_multiprocessor(kernel, gpu, threads, 0) < blocks)
        return CUDA_ERROR_INVALID_VALUE;
    const Architecture& arch = architecture_of(gpu);
    // Without the 1 KiB of each block that the driver keeps: H200, driver 580.159.04, 2026-11-27.
    const int each = arch.shared_per_multiprocessor / blocks - kernel.shared_bytes;
    *bytes = static_cast<size_t>(std::clamp(each, 0, arch.shared_per_block_optin - kernel.shared_bytes));
    return CUDA_SUCCESS;
}
