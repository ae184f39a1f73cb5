// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/kernel_surroundings.h"
#include "policy/lease/lease_file.h"
#include "policy/ledger/folder_presence.h"

// Another share for a job that is running, by somebody who is no member of it.
namespace cuslice::lease {

/// Percents of a job's share, of which 0 leaves one as it is.
struct NewShare {
    uint32_t weight = 0, cap = 0;
};

enum class Edited : uint8_t {
    yes,
    no_job,           // none of that number takes part
    not_on_gpu,       // it has no share of that GPU
    cap_below_share,  // the cap would be below the weight
    failed,           // the file is damaged, or crowded
};

/// Sets what `share` has of a job's share of a GPU. Pure.
Edited edit_share(State& state, uint64_t job, const char* uuid, const NewShare& share, uint64_t now);

/// This user's lease in a folder, and this process's presence there, by which others know that it lives while it makes
/// a value. Not thread-safe.
class LeaseEditor {
  public:
    LeaseEditor() = default;
    LeaseEditor(const LeaseEditor&) = delete;
    ~LeaseEditor() { close(); }
    /// False: there is no lease, or it can't be opened. `why`, which may be null, says why not.
    bool open(const char* folder, LedgerError* why);
    /// Changes the value of the file, as edit_share() says. Its processes go by the new one from the next turn on.
    Edited set_share(uint64_t job, const char* uuid, const NewShare& share);
    void close();

  private:
    ledger::FolderPresence folder_;
    KernelSurroundings surroundings_;
    OpenLease open_;
};

}  // namespace cuslice::lease
