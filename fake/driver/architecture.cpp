#include "fake/driver/architecture.h"

#include <algorithm>

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {
namespace {

constexpr int KiB = 1024;
constexpr Architecture architectures[] = {
    {50, 2048, 32, 64 * KiB, 48 * KiB, 65536},   {52, 2048, 32, 96 * KiB, 48 * KiB, 65536},
    {53, 2048, 32, 64 * KiB, 48 * KiB, 32768},   {60, 2048, 32, 64 * KiB, 48 * KiB, 65536},
    {61, 2048, 32, 96 * KiB, 48 * KiB, 65536},   {62, 2048, 32, 64 * KiB, 48 * KiB, 65536},
    {70, 2048, 32, 96 * KiB, 96 * KiB, 65536},   {75, 1024, 16, 64 * KiB, 64 * KiB, 65536},
    {80, 2048, 32, 164 * KiB, 163 * KiB, 65536}, {86, 1536, 16, 100 * KiB, 99 * KiB, 65536},
    {87, 1536, 16, 164 * KiB, 163 * KiB, 65536}, {89, 1536, 24, 100 * KiB, 99 * KiB, 65536},
    {90, 2048, 32, 228 * KiB, 227 * KiB, 65536}, {100, 2048, 32, 228 * KiB, 227 * KiB, 65536},
    {120, 1536, 24, 100 * KiB, 99 * KiB, 65536},
};

/// Attributes with the same value on every GPU here. Texture and surface limits are those of the Programming Guide.
/// What this driver does not do (RDMA, fabric handles, compression, stream memory operations …) says 0 whatever the
/// profile.
bool common_attribute(int attribute, int& value) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            value = max_threads_per_block;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
            value = static_cast<int>(max_block[0]);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
            value = static_cast<int>(max_block[1]);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
            value = static_cast<int>(max_block[2]);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
            value = static_cast<int>(max_grid[0]);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
            value = static_cast<int>(max_grid[1]);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
            value = static_cast<int>(max_grid[2]);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
            value = shared_per_block;
            return true;
        case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
            value = 64 * KiB;
            return true;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            value = warp_size;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
            value = 2147483647;
            return true;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
            value = 512;
            return true;
        case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
            value = 512;
            return true;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
            value = 32;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
            value = 131072;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
            value = 131072;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
            value = 65536;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
            value = 16384;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE:
            value = 8192;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE:
            value = 32768;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT:
            value = 32768;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:
            value = 2048;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS:
            value = 2046;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
            value = 131072;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
            value = 65536;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
            value = 16384;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
            value = 268435456;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
            value = 131072;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
            value = 65000;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
            value = 2097120;
            return true;
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        case CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER:
        case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
            value = 1;
            return true;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
            value = CU_COMPUTEMODE_DEFAULT;
            return true;
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        case CU_DEVICE_ATTRIBUTE_NUMA_ID:
            value = -1;
            return true;
        case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
            value = 0;
            return true;
        default:
            break;
    }
    // Every other attribute of the header is a feature, and absent.
    value = 0;
    return attribute > 0 && attribute <= CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
}

}  // namespace

const Architecture& architecture_of(const GpuSpec& gpu) {
    const int capability = gpu.major * 10 + gpu.minor;
    const Architecture* found = architectures;
    for (const Architecture& row : architectures) {
        if (row.capability <= capability) found = &row;
    }
    return *found;
}

bool device_attribute(const GpuSpec& gpu, int attribute, int& value) {
    const Architecture& arch = architecture_of(gpu);
    const bool pascal = gpu.major >= 6;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
            value = arch.registers_per_multiprocessor;
            return true;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
            value = static_cast<int>(gpu.clock * 1000);
            return true;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
            value = static_cast<int>(gpu.memory_clock * 1000);
            return true;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
            value = static_cast<int>(gpu.memory_bus_width);
            return true;
        case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
            value = gpu.copy_engines > 0;
            return true;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
            value = static_cast<int>(gpu.copy_engines);
            return true;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            value = static_cast<int>(gpu.multiprocessors);
            return true;
        case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT:
            value = gpu.brand == "geforce" && gpu.major < 6;
            return true;
        case CU_DEVICE_ATTRIBUTE_INTEGRATED:
            value = gpu.integrated;
            return true;
        case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
            value = gpu.ecc;
            return true;
        case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
            value = static_cast<int>(gpu.pci.domain);
            return true;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
            value = static_cast<int>(gpu.pci.bus);
            return true;
        case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
            value = static_cast<int>(gpu.pci.device);
            return true;
        case CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID:
            value = static_cast<int>(gpu.pci_device_id);
            return true;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            value = static_cast<int>(gpu.l2_cache);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            value = arch.threads_per_multiprocessor;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            value = arch.blocks_per_multiprocessor;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            value = arch.shared_per_multiprocessor;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            value = arch.shared_per_block_optin;
            return true;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
            value = gpu.major >= 8 ? KiB : 0;
            return true;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            value = gpu.major;
            return true;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            value = gpu.minor;
            return true;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
            value = pascal;
            return true;
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
            value = pascal;
            return true;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
            value = 0;
            return true;
        case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
            value = gpu.major >= 9;
            return true;
        case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
            value = gpu.major * 10 + gpu.minor == 60 || gpu.major == 7 || gpu.minor == 0 ? 2 : 32;
            return true;
        case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
            value = can_multicast(gpu);
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
            value = gpu.major >= 8 ? static_cast<int>(gpu.l2_cache / 4 * 3) : 0;
            return true;
        case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
            value = gpu.major >= 8 ? 128 << 20 : 0;
            return true;
        default:
            return common_attribute(attribute, value);
    }
}

}  // namespace cuslice::fake
