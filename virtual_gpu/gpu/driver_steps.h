// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

/// Around a call in which the driver may take or give back memory by itself: measures that, charges it, and tells
/// whether it fits. Calls of this kind are serialised per GPU only while they are measured, never while the driver
/// works.
///
///     before → reserve_lower_bound, where a lower bound is known → the driver's call → after
///
/// All partitions of a GPU are charged for memory that the driver takes, so all of them have to have room for it. Sizes
/// are in bytes. Thread-safe; these ask the driver and NVML, so no lock may be held.
class DriverSteps {
  public:
    explicit DriverSteps(VirtualGpu& gpu) : gpu_(gpu), physical_(gpu.physical()) {}

    DriverFootprint::Step before(bool makes_context = false) const;
    /// Charges what the driver will take in the step at least, until it is measured. It may have what is set aside for
    /// the driver, too. False if it doesn't fit: nothing is charged then, and the driver need not be asked.
    bool reserve_lower_bound(DriverFootprint::Step& step, uint64_t bytes, LimitError* why) const;
    /// False if the total is over the limit now, of this partition or of another one that is charged its share, so that
    /// the caller can undo what it did. Without `why` nobody is waited for.
    bool after(DriverFootprint::Step& step, LimitError* why) const;
    /// The same after the end of a context, which may have been the last.
    void after_context_end(DriverFootprint::Step& step) const;

    /// A context on this GPU is current in this thread, and no hook has seen how it began: charges what it has taken.
    void charge_unseen_context() const;
    /// The fewest bytes that a context of this kind takes which is to be this process's first on the GPU, as far as
    /// this user's processes have seen. 0: that isn't known, or there is one.
    uint64_t known_context(uint64_t kind) const;
    /// After a context of this kind was made: keeps its size for processes to come, where it was the first.
    void note_context(uint64_t kind) const;

  private:
    DriverFootprint& footprint() const { return physical_.driver_footprint(); }
    void open_footprint() const;
    DriverFootprint::State state() const;
    uint64_t used_by_others() const;
    bool within_limits(LimitError& why) const;
    bool within_given_back() const;
    bool fits_given_back(DriverFootprint::Step& step, uint64_t bytes) const;
    template <typename Fits>
    bool fits_by_trimming(const LimitError& over, Fits fits) const;
    void restate(LimitError& over, uint64_t bytes) const;

    VirtualGpu& gpu_;
    PhysicalGpu& physical_;
};

}  // namespace cuslice
