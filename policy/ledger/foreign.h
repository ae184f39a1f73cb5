// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/ledger/committed.h"
#include "policy/ledger/ledger_file.h"

namespace cuslice::ledger {

/// A claim of another user's that comes after this one and isn't decided yet: waited for, or taken for granted.
enum class Claims : bool { open, granted };

/// Adds other users' files of the GPU of `ours`, whose mutex isn't held. `most_of_a_job`: bytes that a job of theirs is
/// believed to have at most. `*undecided`: as in add_account(). False if not all could be read in time: `why`, which
/// may be null, says why not. Thread-safe.
bool add_foreign(LedgerFile& ours, uint64_t most_of_a_job, const Deadline& deadline, Claims claims,
                 Committed* committed, bool* undecided, LedgerError* why) CUSLICE_EXCLUDES(ours.mutex());

}  // namespace cuslice::ledger
