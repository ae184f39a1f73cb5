// SPDX-License-Identifier: Apache-2.0
// Attributes of kernels. 11's structure ends before those of clusters.

#include "fake/runtime/modules.h"
#include "fake/runtime/versioned/form.h"

#include <cstring>

using namespace cuslice::fake;

namespace {

#if CUSLICE_CUDART_VERSION >= 12000
constexpr size_t kBytesTold = sizeof(cudaFuncAttributes);
static_assert(kBytesTold == 144);
#else
// NVIDIA's documentation of the runtime API 11.8: the last member is preferredShmemCarveout, with padding behind it.
constexpr size_t kBytesTold = 56;
static_assert(offsetof(cudaFuncAttributes, preferredShmemCarveout) == kBytesTold - 2 * sizeof(int));
#endif

CUresult fill(cudaFuncAttributes* found, CUfunction function) {
    int shared = 0;
    int constant = 0;
    int local = 0;
    const struct {
        CUfunction_attribute attribute;
        int* value;
    } wanted[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &found->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &found->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &found->binaryVersion},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &found->cacheModeCA},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &found->maxDynamicSharedSizeBytes},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &found->preferredShmemCarveout},
#if CUSLICE_CUDART_VERSION >= 12000
        {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &found->clusterDimMustBeSet},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &found->requiredClusterWidth},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &found->requiredClusterHeight},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &found->requiredClusterDepth},
        {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &found->clusterSchedulingPolicyPreference},
        {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &found->nonPortableClusterSizeAllowed},
#endif
    };
    for (const auto& one : wanted)
        CUSLICE_TRY(CU(cuFuncGetAttribute, 2020)(one.value, one.attribute, function));
    found->sharedSizeBytes = static_cast<size_t>(shared);
    found->constSizeBytes = static_cast<size_t>(constant);
    found->localSizeBytes = static_cast<size_t>(local);
    return CUDA_SUCCESS;
}

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
    if (attributes == nullptr)
        return record(cudaErrorInvalidValue);
    return with_function(kernel, [&](CUfunction function) {
        cudaFuncAttributes found{};
        CUSLICE_TRY(fill(&found, function));
        // PTX of ours is loaded, whatever the program's code is.
        if (const int cubin = cubin_capability_of(kernel); cubin != 0)
            found.binaryVersion = cubin;
        std::memcpy(static_cast<void*>(attributes), &found, kBytesTold);
        return CUDA_SUCCESS;
    });
}
