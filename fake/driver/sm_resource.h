// SPDX-License-Identifier: Apache-2.0
#pragma once
// Multiprocessors as programs hand them about: a CUdevResource, of which this driver knows by its own marks where it
// came from. Only how many there are matters here, since nothing runs on them.

#include "fake/driver/cuda_api.h"
#include "fake/driver/handles.h"
#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// Object behind a CUdevResourceDesc.
struct ResourceDescription {
    int ordinal = 0;
    unsigned multiprocessors = 0;
};
inline constinit HandleTable<ResourceDescription, CUdevResourceDesc, HandleKind::ResourceDescription> descriptions;

/// So many multiprocessors of a GPU, that can be split; CUDA_ERROR_NOT_SUPPORTED before Pascal.
CUresult give_resource(const GpuSpec& gpu, int ordinal, unsigned multiprocessors, CUdevResourceType type,
                       CUdevResource* out);

/// cuDevSmResourceSplitByCount, with its arguments checked.
CUresult split_resource(const GpuSpec& gpu, CUdevResource* result, unsigned& groups, const CUdevResource& input,
                        CUdevResource* remaining, bool fine, unsigned least);

/// The GPU that a resource is of: CUDA_ERROR_INVALID_RESOURCE_TYPE or CUDA_ERROR_INVALID_VALUE if it came from nowhere
/// here.
CUresult resource_gpu(const CUdevResource& resource, int& ordinal);

/// Describes resources that came from one split, or a single one that was never split.
CUresult describe_resources(const CUdevResource* resources, unsigned count, CUdevResourceDesc& out);

}  // namespace cuslice::fake
