// SPDX-License-Identifier: Apache-2.0
// Functions of NVML that take a second GPU, or give one.
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/nvml.h"

namespace cuslice {

namespace {

// Two handles. Parts of one GPU are as near to each other as can be; else the physical GPUs are asked.
class Pair {
  public:
    Pair(nvmlDevice_t a, nvmlDevice_t b) : a_(a), b_(b) {
        const VirtualNvmlDevice *one = virtual_nvml().find(a), *other = virtual_nvml().find(b);
        if (one)
            a_ = one->physical;
        if (other)
            b_ = other->physical;
        siblings_ = one && other && one->part.split && one->physical == other->physical;
    }
    bool are_siblings() const { return siblings_; }
    template <typename Answer, typename Ask>
    nvmlReturn_t answer(Answer* place, Answer of_siblings, Ask ask) const {
        if (!siblings_)
            return ask(a_, b_);
        if (!place)
            return NVML_ERROR_INVALID_ARGUMENT;
        *place = of_siblings;
        return NVML_SUCCESS;
    }

  private:
    nvmlDevice_t a_, b_;
    bool siblings_ = false;
};

// An event is the physical GPU's, and is reported once: of its first part.
template <typename Data, typename Call>
nvmlReturn_t wait(Data* data, Call call) {
    const nvmlReturn_t result = call();
    if (result != NVML_SUCCESS || !data->device)
        return result;
    const VirtualNvmlDevice* first = virtual_nvml().first_of(data->device);
    data->device = first ? first->handle() : nullptr;
    return result;
}

}  // namespace

namespace split_nvml {

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t* level) {
    return Pair(a, b).answer(level, NVML_TOPOLOGY_INTERNAL, [&](nvmlDevice_t one, nvmlDevice_t other) {
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetTopologyCommonAncestor)(one, other, level);
    });
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                    nvmlGpuP2PStatus_t* status) {
    const Pair pair(a, b);
    if (pair.are_siblings() && static_cast<unsigned>(index) >= NVML_P2P_CAPS_INDEX_UNKNOWN)
        return NVML_ERROR_INVALID_ARGUMENT;
    return pair.answer(status, NVML_P2P_STATUS_OK, [&](nvmlDevice_t one, nvmlDevice_t other) {
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetP2PStatus)(one, other, index, status);
    });
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int* same) {
    return Pair(a, b).answer(same, 1, [&](nvmlDevice_t one, nvmlDevice_t other) {
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceOnSameBoard)(one, other, same);
    });
}

// A GPU that is split has no MIG devices to show: what is cut is the whole of it.
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t* mig) {
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    if (device && device->part.split)
        return NVML_ERROR_NOT_SUPPORTED;
    return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(device ? device->physical : handle, index, mig);
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* handle) {
    if (!handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    const VirtualNvmlDevice* device = virtual_nvml().find(mig);
    nvmlDevice_t parent = nullptr;
    const nvmlReturn_t result =
        CUSLICE_PHYSICAL_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(device ? device->physical : mig, &parent);
    if (result != NVML_SUCCESS)
        return result;
    const VirtualNvmlDevice* shown = virtual_nvml().first_of(parent);
    if (!shown || shown->part.split)
        return NVML_ERROR_NOT_SUPPORTED;
    *handle = shown->handle();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t events, nvmlEventData_t* data, unsigned milliseconds) {
    return wait(data, [&] { return CUSLICE_PHYSICAL_NVML(nvmlEventSetWait)(events, data, milliseconds); });
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t events, nvmlEventData_t* data, unsigned milliseconds) {
    return wait(data, [&] { return CUSLICE_PHYSICAL_NVML(nvmlEventSetWait_v2)(events, data, milliseconds); });
}

}  // namespace split_nvml

}  // namespace cuslice
