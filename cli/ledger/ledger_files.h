// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "policy/ledger/folder.h"

namespace cuslice::cli {

/// The ledgers in a folder, of all users. Thread-safe as long as each thread has its own.
class LedgerFiles {
  public:
    struct One {
        std::string path, uuid;
        bool own;
        ledger::UserFolder where;  // whose it is
    };

    /// Reads the folder once. What another user put under a name of this user's, or of a third one's, is left out, and
    /// so is all but the first of a user's files of one GPU.
    explicit LedgerFiles(const std::string& folder);
    const std::vector<One>& all() const { return all_; }

  private:
    const std::string folder_;
    ledger::FolderHandle handle_;
    std::vector<One> all_;
};

}  // namespace cuslice::cli
