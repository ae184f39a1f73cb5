#pragma once
#include <cstdint>
#include <span>

#include "config/split.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The driver as it would be with the virtual GPUs in place of the physical ones.
//
// Where the settings split a GPU, this folder's functions (functions.def) are put into the driver's table
// (driver/table.h), between the hooks and the driver: whoever calls through the table counts virtual GPUs, and what
// reaches the driver counts physical ones. Where nothing is split the table is the driver's own, and nothing here runs.
//
//     program → stub or hook → this → the driver
//
// There is one real context on each physical GPU, its primary one; a program's contexts are VirtualContexts
// (contexts.h), whose handles the driver never sees.
class Split {
  public:
    // From now on calls come through here. Once, before anybody calls.
    void install();
    bool installed() const { return installed_; }

    // One of the GPUs that the program sees.
    struct Device {
        CUdevice physical = 0;  // the driver's ordinal
        VirtualPart part;
        GpuIdentity identity;  // a part has its own
    };
    // Which they are: once, after the driver has started and before any of them is used. `physical` in the driver's
    // order.
    void open(std::span<const GpuIdentity> physical, const VirtualParts& parts);
    bool is_open() const { return open_; }

    int count() const { return count_; }
    // Null if there is no such GPU.
    const Device* device(int ordinal) const { return ordinal >= 0 && ordinal < count_ ? &devices_[ordinal] : nullptr; }
    // The first of a physical GPU's parts, as the program counts; -1 if none of them is visible. Whoever is shown the
    // physical GPU gets this one.
    int first_of(CUdevice physical) const;
    // Whether both are parts of one physical GPU, or the same one.
    bool siblings(int a, int b) const {
        const Device *one = device(a), *other = device(b);
        return one && other && one->physical == other->physical;
    }

    // Told of each call of a function that is not supported here; set before install().
    void (*on_refusal)(const char* symbol) = nullptr;

    // Around fork(), so that no lock is held by a thread that the child does not have.
    void lock_all();
    void unlock_all();
    // Of a thread that has left whatever it was doing by a longjmp.
    void leave_locks();

  private:
    bool installed_ = false, open_ = false;
    int count_ = 0;
    Device devices_[VirtualParts::kMost];
};

extern constinit Split the_split;
inline Split& split() { return the_split; }

}  // namespace cuslice
