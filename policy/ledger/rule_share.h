// SPDX-License-Identifier: Apache-2.0
// Caps the total of the jobs of a rule that shares its slice.
#pragma once

#include <span>

#include "policy/ledger/layout.h"

namespace cuslice::ledger {

struct Committed;

/// The accounts and members of a file, which may be another user's and say anything.
struct Contents {
    const Account* accounts;
    std::span<const Member> members;
};

/// Counts the jobs of one rule, among the accounts that were `counted` in `committed`, as no more than they could
/// take together. `own`: the rule that this process reserves under; null: none, or another user's file.
void count_rules(const Contents& contents, const bool (&counted)[kAccounts], const char* own, Committed* committed);

}  // namespace cuslice::ledger
