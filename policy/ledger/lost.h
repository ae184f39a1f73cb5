// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/roster.h"

namespace cuslice::ledger {

/// Makes sure of the file. Puts back one that was removed or overwritten, or finds the one that takes its place by now,
/// and moves this process's places there. `rests`: no lock is waited for. False: errno and `why`, which may be null,
/// say why not, and the process stays in the old one.
bool keep_file(Roster& roster, const Deadline& deadline, bool rests, LedgerError* why)
    CUSLICE_REQUIRES(roster.file.mutex());

}  // namespace cuslice::ledger
