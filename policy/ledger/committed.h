// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include "policy/ledger/accounts.h"
#include "policy/ledger/queue.h"

// How much of a GPU is promised to whom: what this user's file says, and what is believed of the others'.
namespace cuslice::ledger {

// Somebody who stands in the way of a reservation.
struct Holder {
    unsigned user = 0;
    int32_t pid = 0;                             // of the account's first member
    uint64_t pid_namespace = 0, start_time = 0;  // what makes the pid mean one process: see ProcessIdentity
    char command[48] = {};
    uint64_t since = 0;               // CLOCK_REALTIME, nanoseconds
    uint64_t reserved = 0, used = 0;  // bytes
};

// How much of a GPU is promised to whom, over all users.
struct Committed {
    static constexpr unsigned kMax = 64;
    Holder holders[kMax];
    unsigned count = 0, left_out = 0;
    uint64_t promised = 0;  // bytes: the sum over accounts of max(reserved, used)
    uint64_t used = 0;      // bytes that members hold
    Queue queue;            // who waits, as this request sees it
    uint64_t kept = 0;      // bytes that are left, and kept for those who wait
    Waiter kept_for;        // the first of them
    bool keeps = false;     // what is left is kept for this request, which waits
    // Bytes that processes hold for which nothing is reserved, as they are in groups or rules and in no job. In no
    // other figure here.
    uint64_t unreserved = 0;
    // Bytes that the jobs of this request's rule may be promised beyond what they are: see reserves_under().
    uint64_t left_of_rule = kNoLimitBytes;

    // True if `bytes` can be reserved where `available` are left. The rule's jobs can't take what they have reserved
    // beyond its slice.
    bool fits(uint64_t bytes, uint64_t available) const { return std::min(bytes, left_of_rule) <= available; }
};

/// Adds one account of a user's, with a member that lives, to `*committed`. `*undecided`: there is a claim whose fate
/// is not known yet and that comes after ours, and it `waits` for that. One that comes before ours counts as granted.
/// False: the account does not count.
bool add_account(const Account& account, unsigned user, const Member& first, bool waits, Committed* committed,
                 bool* undecided);

}  // namespace cuslice::ledger
