// SPDX-License-Identifier: Apache-2.0
// NVLink, and the fabric that it is a part of.
//
// A profile says whether its GPUs have NVLink (`nvlink`), its compute capability how many links of which version. They
// are active where another GPU of the machine is linked to this one, as nvmlDeviceGetP2PStatus has it; a board that is
// alone has its links, all inactive. What is at their other end, a GPU or a switch, no profile says: the functions that
// tell it are refused by name (refused.cpp).

#include <algorithm>

#include "fake/nvml/answer.h"
#include "fake/nvml/links.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

struct Generation {
    int capability;
    unsigned links;  // of the largest board
    nvmlNvlinkVersion_t version;
};
constexpr Generation kGenerations[] = {{60, 4, NVML_NVLINK_VERSION_1_0},  {70, 6, NVML_NVLINK_VERSION_2_0},
                                       {75, 2, NVML_NVLINK_VERSION_2_2},  {80, 12, NVML_NVLINK_VERSION_3_0},
                                       {86, 4, NVML_NVLINK_VERSION_3_1},  {90, 18, NVML_NVLINK_VERSION_4_0},
                                       {100, 18, NVML_NVLINK_VERSION_5_0}};

/// Null for a GPU without NVLink.
const Generation* generation_of(const GpuSpec& gpu) {
    const auto* found = std::find_if(std::begin(kGenerations), std::end(kGenerations),
                                     [&](const Generation& one) { return one.capability == gpu.capability(); });
    return gpu.nvlink && found != std::end(kGenerations) ? found : nullptr;
}

/// True if another GPU is at the other end of its links.
bool is_linked(const NvmlDevice& device) {
    const std::vector<NvmlDevice>& all = nvml_state().devices();
    return std::any_of(all.begin(), all.begin() + static_cast<ptrdiff_t>(nvml_state().gpus()),
                       [&](const NvmlDevice& other) {
                           return &other != &device && other.spec.nvlink && other.spec.major == device.spec.major;
                       });
}

/// Calls f(generation, is_linked) for a link that there is.
template <typename F>
nvmlReturn_t with_link(nvmlDevice_t handle, unsigned link, const void* out, F&& f) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (link >= NVML_NVLINK_MAX_LINKS)
            return NVML_ERROR_INVALID_ARGUMENT;
        const Generation* generation = generation_of(device.spec);
        if (generation == nullptr)
            return NVML_ERROR_NOT_SUPPORTED;
        return link < generation->links ? f(*generation, is_linked(device)) : NVML_ERROR_INVALID_ARGUMENT;
    });
}

/// "For Hopper or newer", on boards with NVLink. Nobody has registered the GPU with a fabric: there is no fabric
/// manager here, and memory can't be exported to other nodes.
bool has_fabric(const GpuSpec& gpu) { return gpu.major >= 9 && gpu.nvlink; }

template <typename Info>
nvmlReturn_t no_fabric(Info* info) {
    std::fill_n(info->clusterUuid, NVML_GPU_FABRIC_UUID_LEN, static_cast<unsigned char>(0));
    info->status = NVML_SUCCESS;
    info->cliqueId = 0;
    info->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

}  // namespace

namespace cuslice::fake {

unsigned link_count(const GpuSpec& gpu) {
    const Generation* generation = generation_of(gpu);
    return generation == nullptr ? 0 : generation->links;
}

}  // namespace cuslice::fake

CUSLICE_NVML(nvmlDeviceGetNvLinkState, handle, link, out) {
    return with_link(handle, link, out, [&](const Generation&, bool linked) {
        return give(out, linked ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED);
    });
}

CUSLICE_NVML(nvmlDeviceGetNvLinkVersion, handle, link, out) {
    return with_link(handle, link, out,
                     [&](const Generation& generation, bool) { return give(out, generation.version); });
}

CUSLICE_NVML(nvmlDeviceGetNvLinkCapability, handle, link, capability, out) {
    return with_link(handle, link, out, [&](const Generation&, bool linked) {
        switch (capability) {
            case NVML_NVLINK_CAP_P2P_SUPPORTED:
            case NVML_NVLINK_CAP_P2P_ATOMICS:
                return give(out, linked ? 1 : 0);
            case NVML_NVLINK_CAP_SYSMEM_ACCESS:
            case NVML_NVLINK_CAP_SYSMEM_ATOMICS:
            case NVML_NVLINK_CAP_SLI_BRIDGE:
                return give(out, 0);
            case NVML_NVLINK_CAP_VALID:
                return give(out, 1);
            default:
                return NVML_ERROR_INVALID_ARGUMENT;
        }
    });
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetGpuFabricInfo, out, handle, out) {
    return has_fabric(device.spec) ? no_fabric(out) : NVML_ERROR_NOT_SUPPORTED;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetGpuFabricInfoV, out, handle, out) {
    if (!has_fabric(device.spec))
        return NVML_ERROR_NOT_SUPPORTED;
    const bool newest = out->version == struct_version<nvmlGpuFabricInfo_v3_t>(3);
    if (!newest && out->version != struct_version<nvmlGpuFabricInfo_v2_t>(2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->healthMask = 0;  // every part of it: not supported
    if (newest)
        out->healthSummary = NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED;
    return no_fabric(out);
}
