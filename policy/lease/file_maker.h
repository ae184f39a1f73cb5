// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/layout.h"
#include "policy/ledger/folder.h"

// A lease's file that is made under its name, or taken away from it.
namespace cuslice::lease {

/// Memory for one value, which is too much for a stack of somebody else's thread.
class ScratchState {
  public:
    ScratchState();
    ScratchState(const ScratchState&) = delete;
    ~ScratchState();
    /// Null: there is no memory.
    State* get() const { return state_; }

  private:
    State* const state_;
};

/// The file's mapping; null: it can't be mapped.
File* map_lease(int file, int protection);

/// Makes the file: nobody sees it under its name before it is whole. True also where another process was quicker.
bool make_lease(const char* path, const Terms& terms, ledger::LedgerError* why);

/// Takes one with garbage away. Another process may have put a whole one there since it was looked at: then that one is
/// lost, and those who are in it find each other again only once they have joined anew.
bool take_lease_away(const char* path);

}  // namespace cuslice::lease
