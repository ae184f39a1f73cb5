// SPDX-License-Identifier: Apache-2.0
// The other end of each copy that the bounds guest tries, and the structures that describe the copies.
#pragma once

#include "virtual_gpu/driver/cuda_api.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace bounds {

using Bytes = std::vector<unsigned char>;

/// Ends the program unless the driver said yes, where nothing may fail.
void must(CUresult result, const char* what);
#define BOUNDS_MUST(call) ::bounds::must(call, #call)

/// The other ends, each of `bytes`: host memory, device memory of one block, and an array.
struct Ends {
    Bytes host;
    CUdeviceptr device = 0;
    CUarray array = nullptr;
    CUcontext context = nullptr;
};
inline Ends ends;
void make_ends(size_t bytes);
/// Writes the same to all of them.
void fill_ends(const Bytes& bytes);

/// So many units from `at` on, as four rows: the last one is the shorter one if they don't come out even.
inline size_t pitch(size_t units) { return (units + 3) / 4; }
inline size_t width(size_t units) { return units - 3 * pitch(units); }

/// To or from `at`, of the type; the other end is device memory. What is described is this thread's until the next one.
enum class Way { to, from };
const CUDA_MEMCPY2D* rows(Way way, CUdeviceptr at, size_t bytes, CUmemorytype type);
/// The rows as a box of 1 × 4, 2 × 2 or, at an offset in something larger that begins before `at`, 4 × 1.
enum class Shape { layers, box, offset };
const CUDA_MEMCPY3D* box(Way way, CUdeviceptr at, size_t bytes, CUmemorytype type, Shape shape);
const CUDA_MEMCPY3D_PEER* peer_box(Way way, CUdeviceptr at, size_t bytes);
/// Two copies, of which the first one is right.
CUDA_MEMCPY3D_BATCH_OP* box_batch(Way way, CUdeviceptr at, size_t bytes);

const CUDA_MEMSET_NODE_PARAMS* fill(CUdeviceptr at, size_t bytes, unsigned element);
CUgraphNodeParams* copy_node(Way way, CUdeviceptr at, size_t bytes);
CUgraphNodeParams* fill_node(CUdeviceptr at, size_t bytes, unsigned element);

}  // namespace bounds
