// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/sm_resource.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "fake/driver/find.h"

namespace cuslice::fake {

namespace {

/// In the part of a CUdevResource that is the driver's own.
struct Marks {
    uint64_t magic = 0x434c534552534d53;
    int32_t ordinal = 0;
    uint32_t group = 0;  // in its split
    uint64_t split = 0;  // which one; 0: never split
};
static_assert(sizeof(Marks) <= sizeof CUdevResource{}._internal_padding);

std::atomic<uint64_t> last_split{0};

/// The guideline of cuda.h for each architecture.
CUdevSmResource granularity_of(const GpuSpec& gpu, bool fine) {
    CUdevSmResource sm{};
    sm.smCoscheduledAlignment = gpu.major >= 9 && !fine ? 8 : 2;
    sm.minSmPartitionSize = fine || gpu.major < 8 ? 2 : gpu.major < 9 ? 4 : 8;
    return sm;
}

CUresult marks_of(const CUdevResource& resource, Marks& marks) {
    if (resource.type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    std::memcpy(&marks, resource._internal_padding, sizeof marks);
    return marks.magic == Marks{}.magic ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUdevResource make(CUdevSmResource sm, unsigned multiprocessors, const Marks& marks) {
    CUdevResource made{};
    if (multiprocessors == 0)
        return made;  // CU_DEV_RESOURCE_TYPE_INVALID
    made.type = CU_DEV_RESOURCE_TYPE_SM;
    std::memcpy(made._internal_padding, &marks, sizeof marks);
    made.sm = sm;
    made.sm.smCount = multiprocessors;
    return made;
}

}  // namespace

CUresult give_resource(const GpuSpec& gpu, int ordinal, unsigned multiprocessors, CUdevResourceType type,
                       CUdevResource* out) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (gpu.major < 6)
        return CUDA_ERROR_NOT_SUPPORTED;
    Marks marks;
    marks.ordinal = ordinal;
    *out = make(granularity_of(gpu, false), multiprocessors, marks);
    return CUDA_SUCCESS;
}

CUresult resource_gpu(const CUdevResource& resource, int& ordinal) {
    Marks marks;
    CUSLICE_TRY(marks_of(resource, marks));
    ordinal = marks.ordinal;
    return CUDA_SUCCESS;
}

CUresult split_resource(const GpuSpec& gpu, CUdevResource* result, unsigned& groups, const CUdevResource& input,
                        CUdevResource* remaining, bool fine, unsigned least) {
    Marks marks;
    CUSLICE_TRY(marks_of(input, marks));
    // Documented: what came out of a split is split again only by way of a green context.
    if (marks.split != 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const unsigned all = input.sm.smCount;
    if (least > all)
        return CUDA_ERROR_INVALID_VALUE;
    const CUdevSmResource sm = granularity_of(gpu, fine);
    const unsigned step = sm.smCoscheduledAlignment;
    const unsigned size = std::max(sm.minSmPartitionSize, (least + step - 1) / step * step);
    const unsigned possible = all / size;
    if (possible == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const unsigned made = result == nullptr ? possible : std::min(groups, possible);
    marks.split = ++last_split;
    for (marks.group = 0; marks.group < made; marks.group++) {
        if (result != nullptr)
            result[marks.group] = make(sm, size, marks);
    }
    if (remaining != nullptr)
        *remaining = make(sm, all - made * size, marks);
    groups = made;
    return CUDA_SUCCESS;
}

CUresult describe_resources(const CUdevResource* resources, unsigned count, CUdevResourceDesc& out) {
    Marks first;
    std::set<uint32_t> groups;
    ResourceDescription description;
    for (unsigned i = 0; i < count; i++) {
        Marks marks;
        CUSLICE_TRY(marks_of(resources[i], marks));
        if (i == 0)
            first = marks;
        const bool together = marks.ordinal == first.ordinal && marks.split == first.split;
        if (!together || !groups.insert(marks.group).second)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        description.multiprocessors += resources[i].sm.smCount;
    }
    description.ordinal = first.ordinal;
    out = descriptions.create(description).first;
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
