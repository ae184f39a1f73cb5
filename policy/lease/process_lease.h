// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/kernel_surroundings.h"
#include "policy/lease/lease.h"
#include "policy/lease/lease_file.h"
#include "policy/ledger/folder_presence.h"

namespace cuslice::lease {

/// This process's lease in its user's file, with what it takes to be there. Not thread-safe, but for lease().
class ProcessLease {
  public:
    /// Opens the file in the ledgers' folder, and makes it if need be, with these terms. False: `why`, which may be
    /// null, says why not, and the gate is open.
    bool open(const char* folder, const Terms& terms, LedgerError* why);
    Lease& lease() { return lease_; }
    /// True if the file was removed or replaced: others meet in another one by now.
    bool is_lost() const { return lease::is_lost(open_); }
    /// Leaves the job, and opens the file that is there now, or makes it. The old one stays mapped, as threads may
    /// stand at its gate. False: as for open().
    bool open_again(const Terms& terms, LedgerError* why);
    /// Leaves the job, and passes on what it holds.
    void close();
    /// In a forked child.
    void forget();

  private:
    ledger::FolderPresence folder_;
    KernelSurroundings surroundings_;
    OpenLease open_;
    Lease lease_;
};

}  // namespace cuslice::lease
