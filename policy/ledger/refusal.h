#pragma once
#include "config/text.h"
#include "policy/ledger/ledger.h"

namespace cuslice::ledger {

// Why a slice could not be reserved. Large: see Committed.
struct Refusal {
    Joined how = Joined::yes;
    Committed committed;
    Failure failure;
    std::uint64_t asked = 0, available = 0, in_use = 0;  // bytes
};

// "6.0 GiB asked, 4.0 GiB left. Held: job of pid 812 (python, user 1000) 6.0 GiB for 12 min; outside cuslice 3.1 GiB.
// Try --wait or --limit 4096MiB": what a person needs to know, in one line.
FixedText<1024> describe_refusal(const Refusal& refusal);

}  // namespace cuslice::ledger
