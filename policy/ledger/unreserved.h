// SPDX-License-Identifier: Apache-2.0
// Memory of processes for which nothing is reserved: members of groups and rules that are in no job.
#pragma once

#include "policy/ledger/committed.h"
#include "policy/ledger/folder.h"
#include "policy/ledger/rule_share.h"

namespace cuslice::ledger {

/// Names these processes in `committed`, each once however many groups and rules it is in, and adds up what they hold.
/// Changes nothing of what can be had: there it is memory in use, of which the GPU's own figures tell. `own`: this
/// user's file, under its lock.
void add_unreserved(const Contents& contents, const File& own, unsigned user, Committed* committed);

/// The same of another user's file, which is open as `descriptor` and may say anything.
void add_unreserved(const Contents& contents, int descriptor, const UserFolder& where, Committed* committed);

}  // namespace cuslice::ledger
