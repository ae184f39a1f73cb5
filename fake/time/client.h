// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process's way to its machine's timekeeper. Any thread.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "fake/spec/gpu_spec.h"
#include "fake/time/mapping.h"

namespace cuslice::fake {

class TimeClient {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;

    /// Meets the machine's timekeeper, which it starts if there is none. False, and why.
    bool join(const std::string& folder, bool is_virtual, std::string& error);
    /// The process ends, and its work with it.
    void leave();

    /// A context's number, or kNone if there is no room for one more.
    uint32_t open_context(const GpuSpec& gpu);
    void close_context(uint32_t context);
    /// A stream's number, or kNone.
    uint32_t open_stream(uint32_t context);
    /// Once its work has ended, the number is free.
    void close_stream(uint32_t stream);

    bool is_virtual() const { return mapping_->header.is_virtual != 0; }
    /// Now, by the clock that work is timed with.
    Time now() const;
    // The caller keeps other threads off the stream.
    /// Waits until one more piece can be queued.
    void wait_for_room(uint32_t stream);
    /// Adds work at the stream's end and returns its ticket. There is room. `work.submitted` is set here.
    uint64_t submit(uint32_t stream, const Work& work);
    /// Held work up to the point ends.
    void release(StreamPoint point);
    bool reached(StreamPoint point) const;
    /// The time at which a point was reached, as long as no more than kTimeWork pieces have come after it.
    Time reached_at(StreamPoint point) const;
    void wait(StreamPoint point);
    /// Asks whether a point is reached. Sees to it that this is known in time; on the virtual clock a look takes time,
    /// or who looks again and again would never see a change.
    bool look(StreamPoint point);

  private:
    bool meet(const std::string& folder, bool is_virtual, std::string& error);
    bool claim_process();
    uint32_t find_gpu(const GpuSpec& gpu);
    void want(StreamPoint point);
    void touch(uint32_t stream);
    void sleep_on(TimedStream& stream, uint32_t seen);

    TimeMapping mapping_;
    uint32_t process_ = kNone;
    std::atomic<bool> lost_{false};  // the timekeeper was killed: nothing takes time any more
};

}  // namespace cuslice::fake
