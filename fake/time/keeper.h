// SPDX-License-Identifier: Apache-2.0
#pragma once
// The timekeeper of a fake machine: the process that decides when work ends on all its GPUs. Each machine whose work
// takes time has one, as long as it has processes.

#include <array>
#include <string>
#include <vector>

#include "fake/time/figures.h"
#include "fake/time/mapping.h"

namespace cuslice::fake {

class Timekeeper final : TimeListener {
  public:
    /// `mapping` is open, and this process has its byte.
    explicit Timekeeper(TimeMapping& mapping);
    /// Until no process has been there for a while.
    void run();

  private:
    void on_reached(StreamPoint point, Time when) override;
    void on_busy(uint32_t context, Engine engine, Time begin, Time end) override;

    Time clock() const;
    void take_all();
    void take_work(uint32_t number);
    void end_streams();
    void look_at_contexts();
    void end_context(uint32_t number);
    void look_after_processes();
    void end_process(uint32_t number);
    void tell_figures();
    Time next_wanted();
    bool everybody_sleeps() const;
    uint64_t sleeps_of_all() const;
    bool nobody_is_left();
    void sleep_until(Time wanted);
    void pass_virtual_time(Time wanted);

    TimeMapping& mapping_;
    TimeFile& file_;
    TimeFigures figures_;
    TimeModel model_;
    uint32_t contexts_seen_ = 0;
    uint32_t streams_used_ = 0;  // streams below that have had work
    Time processes_seen_ = 0;    // on the host's clock
    Time alone_since_ = 0;
    std::array<bool, kTimeGpus> has_gpu_{};
    std::vector<uint32_t> closing_;  // streams that have been closed
};

}  // namespace cuslice::fake
