// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/text.h"
#include "policy/ledger/ledger.h"

namespace cuslice::ledger {

// Why a slice could not be reserved. Large: see Committed.
struct Refusal {
    Joined how = Joined::yes;
    Committed committed;
    LedgerError failure;
    bool rebuilt = false;  // the file was damaged or of another version, and was made anew
    bool waiting = false;  // it was waited for, so there is no advice to do so
    bool launched = true;  // by cuslice run, whose options the advice names; else it names variables
    uint64_t asked = 0, available = 0, in_use = 0;  // bytes

    // False where the process may allocate, if unknown to the others.
    bool stands() const { return how != Joined::yes && how != Joined::unavailable; }
};

// Milliseconds in which a context is made and charged.
inline constexpr uint64_t kSettles = 3000;

// A context that a job's process is making is in use before its size is known and charged, and looks like memory that
// somebody outside has. True where it may be such that the slice doesn't fit on a GPU of `capacity` bytes: the jobs
// have reserved as much that they don't use, and without it the slice would be there.
bool may_be_charged_soon(const Refusal& refusal, uint64_t capacity);

/// A process's command in a refusal: it says more than the name in the ledger.
using CommandText = FixedText<96>;

// How a refusal is told. Within somebody else's program neither is looked up: users are numbers there, and processes
// are called as the ledger has it.
struct Telling {
    // A user's name.
    FixedText<64> (*user_name)(unsigned user) = nullptr;
    // A process's command, of which the ledger knows the name.
    CommandText (*command)(const ProcessIdentity& process, unsigned user, std::string_view name) = nullptr;
};

// "12 s", "3 min", "5 h".
FixedText<32> format_age(uint64_t seconds);
// Since a moment of CLOCK_REALTIME, in nanoseconds.
uint64_t seconds_since(uint64_t moment);

// "4.0 GiB left. Held: pid 812 (python, user alice) 6.0 GiB for 12 min; outside cuslice 3.1 GiB"; and where something
// is kept for somebody who waits, for whom: "4.0 GiB left, kept for pid 813 (python, user bob), which has waited
// for 14.0 GiB for 12 s. Held: …".
FixedText<1024> describe_left(const Refusal& refusal, const Telling& telling = {});
// "6.0 GiB asked, 4.0 GiB left. Held: pid 812 (python, user alice) 6.0 GiB for 12 min; outside cuslice 3.1 GiB.
// Try --wait or --limit 4096MiB": what a person needs to know, in one line.
FixedText<1024> describe_refusal(const Refusal& refusal, const Telling& telling = {});

}  // namespace cuslice::ledger
