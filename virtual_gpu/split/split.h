// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include "config/split/plan.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The driver as it would be with the virtual GPUs in place of the physical ones.
//
// Where the settings split a GPU, this folder's functions (driver/functions.def) are put into the driver's table
// (driver/table.h), between the hooks and the driver: whoever calls through the table counts virtual GPUs, and what
// reaches the driver counts physical ones. Where nothing is split the table is the driver's own, and nothing here runs.
//
//     program → stub or hook → this → the driver
//
// There is one real context on each physical GPU, its primary one; a program's contexts are VirtualContexts
// (contexts.h), whose handles the driver never sees.
class Split {
  public:
    // True if calls come through here (install_split).
    bool installed() const { return installed_; }
    void set_installed() { installed_ = true; }

    // One of the GPUs that the program sees.
    struct Device {
        CUdevice physical = 0;  // the driver's ordinal
        VirtualPart part;
        GpuIdentity identity;  // a part has its own
    };
    // The next one, before open().
    void add(const Device& device) { devices_[count_++] = device; }
    // All of them are there, and seen from now on, at once.
    void open() { __atomic_store_n(&open_, true, __ATOMIC_RELEASE); }
    bool is_open() const { return __atomic_load_n(&open_, __ATOMIC_ACQUIRE); }

    int count() const { return is_open() ? count_ : 0; }
    std::span<const Device> devices() const { return {devices_, static_cast<size_t>(count())}; }
    // Null if there is no such GPU.
    const Device* device(int ordinal) const { return ordinal >= 0 && ordinal < count() ? &devices_[ordinal] : nullptr; }
    // The first of a physical GPU's parts, as the program counts; -1 if none of them is visible. Whoever is shown the
    // physical GPU gets this one.
    int first_of(CUdevice physical) const;
    // The partition with this ordinal; null if there is no such GPU, or it is not split.
    const Device* partition(int ordinal) const {
        const Device* known = device(ordinal);
        return known && known->part.split ? known : nullptr;
    }
    // True if both are partitions of one physical GPU, or the same one.
    bool siblings(int a, int b) const {
        const Device *one = device(a), *other = device(b);
        return one && other && one->physical == other->physical;
    }

    // Finds the virtual GPU that the allocation with this base address was made on and, where it is known, the
    // context. False if nothing was written down of it. Set before install_split().
    bool (*find_owner)(CUdeviceptr base, int* gpu, CUcontext* context) = know_no_owner;
    // Told of each call of a function that is not supported here; set before install_split().
    void (*on_refusal)(const char* symbol) = tell_nobody;
    // Told each time a context of a part is refused as its GPU doesn't have the part's priority, but from the least
    // urgent to the greatest (a lower number); set before install_split().
    void (*on_bad_priority)(const Device& part, int least, int greatest) = complain_to_nobody;

    // The callbacks as they are before anybody sets them.
    static bool know_no_owner(CUdeviceptr, int*, CUcontext*) { return false; }
    static void tell_nobody(const char*) {}
    static void complain_to_nobody(const Device&, int, int) {}

  private:
    bool installed_ = false, open_ = false;
    int count_ = 0;
    Device devices_[VirtualParts::kMax];
};

extern constinit Split the_split;
inline Split& split() { return the_split; }

}  // namespace cuslice
