// SPDX-License-Identifier: Apache-2.0
// A player (player.cpp) in a process of its own.
#pragma once

#include <sys/types.h>

#include <string>

#include "tests/preload/guest.h"

namespace cuslice::tests {

class RunningPlayer {
  public:
    /// `said`: a file for all that it writes.
    RunningPlayer(unsigned job, const Words& words, const Words& environment, const std::string& said);
    ~RunningPlayer();
    RunningPlayer(const RunningPlayer&) = delete;
    RunningPlayer& operator=(const RunningPlayer&) = delete;

    unsigned job() const { return job_; }
    pid_t pid() const { return pid_; }
    bool is_stopped() const { return stopped_; }
    bool is_ending() const { return in_ < 0; }

    void tell(const std::string& line) const;
    void kill();
    void stop_or_go_on();
    /// Its input ends, and so does it.
    void end();
    /// True once it has ended.
    bool has_ended();
    /// True if it has ended otherwise than by what was done to it here.
    bool ended_strangely() const { return strange_; }

  private:
    const unsigned job_;
    pid_t pid_ = -1;
    int in_ = -1;
    bool stopped_ = false, killed_ = false, ended_ = false, strange_ = false;
};

}  // namespace cuslice::tests
