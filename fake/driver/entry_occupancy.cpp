// Occupancy: from the architecture's limits and what the kernel takes.

#include <algorithm>

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/module.h"
#include "fake/driver/occupancy.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// Registers are handed out to warps in units of 256.
constexpr int register_unit = 256;

constexpr unsigned all_flags = CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;

struct Asked {
    Context* context = nullptr;
    Function* function = nullptr;
};

/// The function and its context; the driver's lock is held.
CUresult find(CUfunction handle, Asked& asked) {
    if (const CUresult bad = current_context(asked.context); bad != CUDA_SUCCESS) return bad;
    return launchable(handle, *asked.context, asked.function);
}

CUresult active_blocks(int* blocks, CUfunction handle, int threads, size_t shared, unsigned flags) {
    Asked asked;
    if (blocks == nullptr || threads <= 0 || (flags & ~all_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = find(handle, asked); bad != CUDA_SUCCESS) return bad;
    *blocks = blocks_per_multiprocessor(*asked.function->info, asked.context->gpu->spec, threads, shared);
    return CUDA_SUCCESS;
}

/// The block size with the most threads at work, the largest of equals.
CUresult best_block(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of, size_t shared, int limit,
                    unsigned flags) {
    Asked asked;
    if (grid == nullptr || block == nullptr || (flags & ~all_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<const KernelInfo> info;  // stays while the program's function runs without the lock
    {
        const std::lock_guard hold(driver().lock);
        if (const CUresult bad = find(handle, asked); bad != CUDA_SUCCESS) return bad;
        info = asked.function->info;
    }
    const GpuSpec& gpu = asked.context->gpu->spec;
    const KernelInfo& kernel = *info;
    const int most = limit > 0 ? std::min(limit, kernel.max_threads) : kernel.max_threads;
    int best_threads = 0, best = 0, best_blocks = 0;
    for (int threads = (most + warp_size - 1) / warp_size * warp_size; threads > 0; threads -= warp_size) {
        const int size = std::min(threads, most);
        const int blocks =
            blocks_per_multiprocessor(kernel, gpu, size, shared_of != nullptr ? shared_of(size) : shared);
        if (blocks * size <= best_threads) continue;
        best_threads = blocks * size;
        best = size;
        best_blocks = blocks;
    }
    *block = best;
    *grid = best_blocks * static_cast<int>(gpu.multiprocessors);
    return CUDA_SUCCESS;
}

}  // namespace

namespace cuslice::fake {

int blocks_per_multiprocessor(const KernelInfo& kernel, const GpuSpec& gpu, int threads, std::size_t dynamic_shared) {
    const Architecture& arch = architecture_of(gpu);
    if (threads > kernel.max_threads) return 0;
    const int warps = (threads + warp_size - 1) / warp_size;
    const std::size_t shared =
        static_cast<std::size_t>(kernel.shared_bytes) + dynamic_shared + (gpu.major >= 8 ? 1024 : 0);
    const auto room = static_cast<std::size_t>(arch.shared_per_multiprocessor);
    if (static_cast<std::size_t>(kernel.shared_bytes) + dynamic_shared >
        static_cast<std::size_t>(arch.shared_per_block_optin))
        return 0;
    const int per_warp =
        (std::max(kernel.registers, 1) * warp_size + register_unit - 1) / register_unit * register_unit;
    int blocks = std::min(arch.blocks_per_multiprocessor, arch.threads_per_multiprocessor / (warps * warp_size));
    blocks = std::min(blocks, arch.registers_per_multiprocessor / (per_warp * warps));
    if (shared > 0) blocks = std::min(blocks, static_cast<int>(room / shared));
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

CUSLICE_ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, bytes, handle, blocks, threads) {
    Asked asked;
    if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = find(handle, asked); bad != CUDA_SUCCESS) return bad;
    const GpuSpec& gpu = asked.context->gpu->spec;
    const KernelInfo& kernel = *asked.function->info;
    if (blocks_per_multiprocessor(kernel, gpu, threads, 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
    const Architecture& arch = architecture_of(gpu);
    const int each = arch.shared_per_multiprocessor / blocks - kernel.shared_bytes - (gpu.major >= 8 ? 1024 : 0);
    *bytes = static_cast<size_t>(std::clamp(each, 0, arch.shared_per_block_optin - kernel.shared_bytes));
    return CUDA_SUCCESS;
}
