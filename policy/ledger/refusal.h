#pragma once
#include "config/text.h"
#include "policy/ledger/ledger.h"

namespace cuslice::ledger {

// Why a slice could not be reserved. Large: see Committed.
struct Refusal {
    Joined how = Joined::yes;
    Committed committed;
    Failure failure;
    bool rebuilt = false;  // the file was damaged or of another version, and was made anew
    std::uint64_t asked = 0, available = 0, in_use = 0;  // bytes
};

// "12 s", "3 min", "5 h".
FixedText<32> format_age(std::uint64_t seconds);
// Since a moment of CLOCK_REALTIME, in nanoseconds.
std::uint64_t seconds_since(std::uint64_t moment);

// "6.0 GiB asked, 4.0 GiB left. Held: job of pid 812 (python, user 1000) 6.0 GiB for 12 min; outside cuslice 3.1 GiB.
// Try --wait or --limit 4096MiB": what a person needs to know, in one line.
FixedText<1024> describe_refusal(const Refusal& refusal);

}  // namespace cuslice::ledger
