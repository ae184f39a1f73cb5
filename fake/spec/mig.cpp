// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/mig.h"

#include <cmath>
#include <cstdio>

#include "fake/units.h"

namespace cuslice::fake {
namespace {

constexpr unsigned kComputeSlices = 7, kMemorySlices = 8;

struct Share {
    unsigned compute = 0, memory = 0;
};

/// "2g.35gb" of a GPU of 141 GB: two sevenths of the multiprocessors, two eighths of the memory.
bool read_share(const std::string& text, const GpuSpec& gpu, Share& share) {
    unsigned gigabytes = 0;
    int end = 0;
    if (std::sscanf(text.c_str(), "%1ug.%4ugb%n", &share.compute, &gigabytes, &end) != 2 ||
        end != static_cast<int>(text.size()) || share.compute < 1 || share.compute > kComputeSlices)
        return false;
    const double slice = static_cast<double>(gpu.memory + gpu.reserved) / kGiB / kMemorySlices;
    share.memory = static_cast<unsigned>(std::lround(gigabytes / slice));
    return share.memory >= 1 && share.memory <= kMemorySlices;
}

}  // namespace

bool check_instances(const GpuSpec& gpu, std::string& why) {
    Share all;
    for (const std::string& text : gpu.mig) {
        Share share;
        if (!read_share(text, gpu, share)) {
            why = "mig: \"" + text + "\" is no instance of this GPU; write it as nvidia-smi does, such as \"1g.18gb\"";
            return false;
        }
        all.compute += share.compute;
        all.memory += share.memory;
    }
    if (all.compute <= kComputeSlices && all.memory <= kMemorySlices)
        return true;
    why = "mig: the instances are more than the GPU: they have " + std::to_string(all.compute) + " of 7 compute and " +
          std::to_string(all.memory) + " of 8 memory slices";
    return false;
}

std::vector<GpuSpec> instances_of(const GpuSpec& gpu) {
    constexpr uint64_t kPage = 2 * kMiB;
    std::vector<GpuSpec> instances;
    for (const std::string& text : gpu.mig) {
        Share share;
        read_share(text, gpu, share);
        GpuSpec instance = gpu;
        instance.mig.clear();
        instance.is_instance = true;
        instance.gpu_instance = static_cast<unsigned>(instances.size()) + kComputeSlices;  // ids of 1g instances
        instance.name = gpu.name + " MIG " + text;
        instance.uuid = made_up_uuid(uuid_text(gpu) + "/" + std::to_string(instances.size()));
        instance.memory = gpu.memory * share.memory / kMemorySlices / kPage * kPage;
        instance.reserved = gpu.reserved * share.memory / kMemorySlices / kPage * kPage;
        instance.multiprocessors = gpu.multiprocessors * share.compute / kMemorySlices;
        if (instance.multiprocessors == 0)
            instance.multiprocessors = 1;
        instance.nvlink = false;  // no peers, no sharing between processes
        instances.push_back(instance);
    }
    return instances;
}

}  // namespace cuslice::fake
