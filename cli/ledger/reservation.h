// SPDX-License-Identifier: Apache-2.0
// One GPU's part of a job: its slice, and the place in that GPU's ledger which reserves it.
#pragma once

#include <string>

#include "cli/gpus/gpu_query.h"
#include "config/settings.h"
#include "policy/ledger/ledger.h"
#include "policy/ledger/refusal.h"

namespace cuslice::cli {

/// A place that was taken stays taken until the process ends, and goes on over exec: with the descriptor, the lock.
class Reservation {
  public:
    Reservation(const Gpu& gpu, const Settings& settings);

    const Gpu& gpu() const { return gpu_; }
    /// "GPU 0", or the UUID where there is no index.
    std::string name() const;
    /// Bytes that are to be reserved; 0 where nothing limits the program on this GPU.
    uint64_t asked() const { return refusal_.asked; }
    /// Bytes that could be had when it was last looked at or asked for.
    uint64_t available() const { return refusal_.available; }

    /// Opens the GPU's ledger in `folder`. False if that can't be done: failure() then says why.
    bool open(const std::string& folder);
    /// "@UUID=id": which file it is, for the program that looks for its job there.
    std::string made_in() const;
    bool rebuilt() const { return ledger_.found() == ledger::Found::rebuilt; }
    std::string failure() const;
    /// True if that folder has no place for a ledger at all.
    bool no_place() const { return refusal_.failure.no_place; }
    /// True if another user stands in the way.
    bool stranger() const { return refusal_.failure.stranger; }
    /// Sets the memory that is free on the GPU now, as NVML reports it.
    void set_free(std::optional<uint64_t> free) { gpu_.free = free; }
    /// Sees what could be had, without taking it. Without a ledger that is what is free.
    void look();
    /// True if look() could read the ledger.
    bool seen() const { return seen_; }
    bool fits() const { return refusal_.committed.fits(refusal_.asked, refusal_.available); }
    /// True if a slice that doesn't fit now may fit in a moment, once a context that another job is making has been
    /// charged.
    bool may_fit_soon() const { return ledger::may_be_charged_soon(refusal_, gpu_.total); }
    /// Waits in the GPU's queue until it is taken or closed, and says so in its ledger.
    void queue_up(const std::string& command);
    /// It was passed so often in the queue that what is left is kept for it; not once it steps aside.
    bool keeps() const { return seen_ && refusal_.committed.keeps; }
    void step_aside(bool aside) { ledger_.step_aside(aside); }
    /// "number 2 of 3 in the queue".
    std::string place_in_queue() const;
    /// "4.0 GiB on GPU 0, number 2 of 3 in the queue: 1.0 GiB left. Held: …".
    std::string wish() const;
    /// Reserves the slice for the job of this name.
    ledger::Joined take(const std::string& job, const std::string& command);
    bool taken() const { return place_.there(); }
    /// "GPU 0: 4.0 GiB asked, 1.0 GiB left. Held: …", with what to try unless it was waited for.
    std::string refusal() const;
    /// Lets go of the ledger, where nothing was taken: no descriptor of ours is to reach the program.
    void close();

  private:
    uint64_t in_use() const;

    Gpu gpu_;
    ledger::Ledger ledger_;
    ledger::Membership place_;
    ledger::Refusal refusal_;
    bool seen_ = false;
};

}  // namespace cuslice::cli
