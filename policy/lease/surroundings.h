// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"

namespace cuslice::lease {

/// State of a process that has a place in the lease.
enum class Condition : uint8_t { runs, stopped, ended };

/// The clock, the sleep and the machine's processes, which a lease is handed: tests have a clock of their own.
/// Thread-safe.
class Surroundings {
  public:
    virtual uint64_t now() = 0;
    /// Sleeps while the gate shows this, and until then at most.
    virtual void sleep(const Gate& gate, uint64_t shown, uint64_t until) = 0;
    /// Wakes all threads that sleep at the gate, which are one process's.
    virtual void wake(Gate& gate) = 0;
    virtual Condition condition_of(const Member& member) = 0;
    /// True if the process with this presence has ended, whether it has a place or not.
    virtual bool has_ended(uint64_t presence) = 0;

    /// Nothing in the lease names this process any more, which has ended.
    virtual void forget(uint64_t presence) = 0;

  protected:
    ~Surroundings() = default;
};

}  // namespace cuslice::lease
