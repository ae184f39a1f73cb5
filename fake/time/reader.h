// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the file of time from outside: who had which engine, and for how long. One thread at a time.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "fake/time/mapping.h"

namespace cuslice::fake {

/// Nanoseconds that each engine was busy.
using BusyTimes = std::array<Time, kEngines>;

/// A process had an engine of a GPU all that time.
struct Turn {
    std::string uuid;
    int pid = 0;
    Engine engine = Engine::none;
    Time begin = 0, end = 0;
};

class TimeReader {
  public:
    TimeReader() = default;
    ~TimeReader();
    TimeReader(const TimeReader&) = delete;
    TimeReader& operator=(const TimeReader&) = delete;

    /// Maps a machine's file of time, also one that took the place of an earlier one, and has the timekeeper complete
    /// its figures. A timekeeper that has ended leaves them as they are. False: none of the machine's work was timed.
    bool refresh(const std::string& folder);

    // Answers by the figures at the latest refresh.

    /// Now, by the clock that work is timed with.
    Time now() const;
    /// A GPU's engines within the last `length`, of which kTimeKept is known.
    BusyTimes busy_within(const std::string& uuid, Time length) const;
    /// The same of one process.
    BusyTimes busy_within(const std::string& uuid, int pid, Time length) const;
    /// All that a process's contexts have had, of those whose figures are there still; empty if there are none.
    std::optional<BusyTimes> total(const std::string& uuid, int pid) const;
    /// The turns that are kept, in the order of their ends.
    std::vector<Turn> turns() const;

  private:
    bool map(const std::string& path);
    bool is_current(const std::string& path) const;
    void unmap();
    void ask() const;
    /// The GPU's number, or kTimeGpus.
    uint32_t gpu_of(const std::string& uuid) const;
    template <typename F>
    void each_context(const std::string& uuid, int pid, F&& f) const;

    TimeMapping lock_;  // the lock alone: it tells whether the timekeeper lives
    TimeFile* file_ = nullptr;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace cuslice::fake
