// SPDX-License-Identifier: Apache-2.0
#pragma once
// The time that a GPU needs for what the driver is asked, where CUSLICE_FAKE_COST gives work a time.

#include <string>

#include "fake/driver/extents.h"
#include "fake/driver/image.h"
#include "fake/driver/launch.h"
#include "fake/driver/work_queue.h"
#include "fake/time/model.h"

namespace cuslice::fake {

/// Reads CUSLICE_FAKE_COST and CUSLICE_FAKE_CLOCK, and meets the timekeeper if they ask for one. False, and why.
bool start_timing(std::string& error);
void end_timing();

// Needs of a GPU: none where work takes no time.

/// A kernel whose cost is `until` goes on until the 32-bit word is set that its first parameter points to. The current
/// context's; CUDA_ERROR_NOT_SUPPORTED, by name, if it has no such parameter.
CUresult kernel_needs(const KernelInfo& info, const LaunchShape& shape, const LaunchArguments& arguments,
                      const GpuSpec& gpu, WorkQueue::Needs& needs);
/// `rows`: so many copies like this one. On the GPU of the current context.
Work copy_time(const Extents& to, const Extents& from, size_t rows = 1);
Work fill_time(const Extents& rows);

/// Holds the calling thread until it has been in a call for so many nanoseconds, as the profile's driver needs.
class CallTime {
  public:
    explicit CallTime(uint64_t nanoseconds);
    ~CallTime();
    CallTime(const CallTime&) = delete;
    CallTime& operator=(const CallTime&) = delete;

  private:
    uint64_t end_ = 0;
};

}  // namespace cuslice::fake
