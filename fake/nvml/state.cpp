// SPDX-License-Identifier: Apache-2.0
#include "fake/nvml/state.h"

#include <cstring>

#include "fake/duration.h"
#include "fake/nvml/log.h"
#include "fake/spec/machine.h"
#include "fake/spec/mig.h"

namespace cuslice::fake {
namespace {

// Handles are numbers, not addresses: "NVML", then the position.
constexpr uint64_t kHandleMark = 0x4e564d4c00000000ULL;

}  // namespace

Nvml& nvml_state() {
    static auto* one = new Nvml;
    return *one;
}

bool NvmlDevice::open() {
    const std::lock_guard hold(nvml_state().lock);
    std::string error;
    if (!opened) {
        opened = books.open(spec, error);
        if (!opened)
            nvml_say(error);
    }
    return opened;
}

nvmlReturn_t Nvml::start(unsigned flags) {
    constexpr unsigned kAll = NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH | nvml::kInitFlagForceInit;
    if ((flags & ~kAll) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    const std::lock_guard hold(count_lock_);
    if (!read_) {
        std::string error;
        MachineSpec machine;
        if (!machine_from_environment(machine, error)) {
            nvml_say(error);
            return NVML_ERROR_DRIVER_NOT_LOADED;
        }
        gpus_ = machine.size();
        size_t instances = 0;
        for (const GpuSpec& gpu : machine)
            instances += gpu.mig.size();
        devices_ = std::vector<NvmlDevice>(gpus_ + instances);
        for (size_t i = 0, next = gpus_; i < gpus_; i++) {
            unsigned place = 0;
            for (GpuSpec& instance : instances_of(machine[i])) {
                devices_[next].spec = std::move(instance);
                devices_[next].parent = i;
                devices_[next++].place = place++;
            }
            devices_[i].spec = std::move(machine[i]);
        }
        read_ = true;
    }
    starts_++;
    pause_for(devices_.front().spec.driver.nvml_time);
    return NVML_SUCCESS;
}

nvmlReturn_t Nvml::stop() {
    const std::lock_guard hold(count_lock_);
    if (starts_ == 0)
        return NVML_ERROR_UNINITIALIZED;
    starts_--;
    return NVML_SUCCESS;
}

bool Nvml::started() {
    uint64_t pause = 0;
    {
        const std::lock_guard hold(count_lock_);
        if (starts_ == 0)
            return false;
        pause = devices_.front().spec.driver.nvml_time;
    }
    pause_for(pause);
    return true;
}

size_t Nvml::instance(size_t gpu, unsigned place) const {
    for (size_t i = gpus_; i < devices_.size(); i++) {
        if (devices_[i].parent == gpu && devices_[i].place == place)
            return i;
    }
    return NvmlDevice::kNone;
}

nvmlDevice_t Nvml::handle(size_t index) const { return reinterpret_cast<nvmlDevice_t>(kHandleMark + index); }

nvmlReturn_t Nvml::find(nvmlDevice_t handle, NvmlDevice*& device) {
    if (!started())
        return NVML_ERROR_UNINITIALIZED;
    const uint64_t index = reinterpret_cast<uint64_t>(handle) - kHandleMark;
    if (index >= devices_.size())
        return NVML_ERROR_INVALID_ARGUMENT;
    device = &devices_[index];
    return NVML_SUCCESS;
}

nvmlReturn_t copy_text(const std::string& text, char* out, unsigned size) {
    if (out == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (size < text.size() + 1)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    std::memcpy(out, text.c_str(), text.size() + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t holders_of(NvmlDevice& device, std::vector<NvmlHolder>& holders) {
    const size_t own = nvml_state().place_of(device);
    for (NvmlDevice& one : nvml_state().devices()) {
        if (&one != &device && one.parent != own)
            continue;
        if (!one.open())
            return NVML_ERROR_UNKNOWN;
        bool known = true;
        for (const Holder& holder : one.books.holders(&known)) {
            if (!holder.live || holder.contexts == 0)
                continue;
            const int pid = one.spec.driver.lists_hosts_pids() ? holder.pid : holder.pid_here;
            if (pid != 0)
                holders.push_back({holder, pid, &one.spec});
        }
        if (!known)
            return NVML_ERROR_UNKNOWN;
    }
    return NVML_SUCCESS;
}

}  // namespace cuslice::fake
