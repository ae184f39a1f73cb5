// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/surroundings.h"
#include "policy/ledger/folder_presence.h"

namespace cuslice::lease {

/// The real ones: the kernel's clock and futexes, and /proc and presences in the ledgers' folder, which is there as
/// long as this is. One thread at a time looks there, as the lease has a lock.
class KernelSurroundings : public Surroundings {
  public:
    void look_in(ledger::FolderPresence& folder) { folder_ = &folder; }

    uint64_t now() override;
    void sleep(const Gate& gate, uint64_t shown, uint64_t until) override;
    void wake(Gate& gate) override;
    Condition condition_of(const Member& member) override;
    bool has_ended(uint64_t presence) override;
    void forget(uint64_t presence) override;

  private:
    // The program may have closed the folder's descriptor since.
    const ledger::UserFolder& where() { return folder_->look_again(); }

    ledger::FolderPresence* folder_ = nullptr;
};

}  // namespace cuslice::lease
