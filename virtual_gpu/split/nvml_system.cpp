// Functions of NVML that take a second GPU, or give one.
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/nvml.h"
#include "virtual_gpu/split/nvml_functions.h"

namespace cuslice {

namespace {

using nvml::Device;
using nvml::Return;

// Two handles. Parts of one GPU are as near to each other as can be; else the physical GPUs are asked.
class Pair {
  public:
    Pair(Device a, Device b) : a_(a), b_(b) {
        const VirtualNvmlDevice *one = virtual_nvml().find(a), *other = virtual_nvml().find(b);
        if (one) a_ = one->physical;
        if (other) b_ = other->physical;
        siblings_ = one && other && one->part.split && one->physical == other->physical;
    }
    template <typename Answer, typename Ask>
    Return answer(Answer* place, Answer of_siblings, Ask ask) const {
        if (!siblings_) return ask(a_, b_);
        if (!place) return nvml::ERROR_INVALID_ARGUMENT;
        *place = of_siblings;
        return nvml::SUCCESS;
    }

  private:
    Device a_, b_;
    bool siblings_ = false;
};

// An event is the physical GPU's, and is reported once: of its first part.
template <typename Data, typename Call>
Return wait(Data* data, Call call) {
    const Return result = call();
    if (result != nvml::SUCCESS || !data->device) return result;
    const VirtualNvmlDevice* first = virtual_nvml().first_of(data->device);
    data->device = first ? first->handle() : nullptr;
    return result;
}

}  // namespace

namespace split_nvml {

Return nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, nvml::GpuTopologyLevel* level) {
    return Pair(a, b).answer(level, nvml::TOPOLOGY_INTERNAL, [&](Device one, Device other) {
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetTopologyCommonAncestor)(one, other, level);
    });
}

Return nvmlDeviceGetP2PStatus(Device a, Device b, nvml::GpuP2PCapsIndex index, nvml::GpuP2PStatus* status) {
    return Pair(a, b).answer(status, nvml::P2P_STATUS_OK, [&](Device one, Device other) {
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetP2PStatus)(one, other, index, status);
    });
}

Return nvmlDeviceOnSameBoard(Device a, Device b, int* same) {
    return Pair(a, b).answer(same, 1, [&](Device one, Device other) {
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceOnSameBoard)(one, other, same);
    });
}

// A GPU that is split has no MIG devices to show: what is cut is the whole of it.
Return nvmlDeviceGetMigDeviceHandleByIndex(Device handle, unsigned index, Device* mig) {
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    if (device && device->part.split) return nvml::ERROR_NOT_SUPPORTED;
    return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(device ? device->physical : handle, index, mig);
}

Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig, Device* handle) {
    if (!handle) return nvml::ERROR_INVALID_ARGUMENT;
    const VirtualNvmlDevice* device = virtual_nvml().find(mig);
    Device parent = nullptr;
    const Return result =
        CUSLICE_PHYSICAL_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(device ? device->physical : mig, &parent);
    if (result != nvml::SUCCESS) return result;
    const VirtualNvmlDevice* shown = virtual_nvml().first_of(parent);
    if (!shown || shown->part.split) return nvml::ERROR_NOT_SUPPORTED;
    *handle = shown->handle();
    return nvml::SUCCESS;
}

Return nvmlEventSetWait(nvml::EventSet events, nvml::EventDataV1* data, unsigned milliseconds) {
    return wait(data, [&] { return CUSLICE_PHYSICAL_NVML(nvmlEventSetWait)(events, data, milliseconds); });
}

Return nvmlEventSetWait_v2(nvml::EventSet events, nvml::EventData* data, unsigned milliseconds) {
    return wait(data, [&] { return CUSLICE_PHYSICAL_NVML(nvmlEventSetWait_v2)(events, data, milliseconds); });
}

}  // namespace split_nvml

}  // namespace cuslice
