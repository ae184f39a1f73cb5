// SPDX-License-Identifier: Apache-2.0
// Sizes of contexts, as this user's processes have seen them on a GPU, in the header of its ledger.
#pragma once

#include <cstdint>

#include "policy/ledger/layout.h"

namespace cuslice::ledger {

/// The fewest bytes that a process's first context of this kind has taken; 0: none was seen. The file may say anything,
/// so a caller compares it with what a context can take. Thread-safe, also between processes.
uint64_t least_context(const Header& header, uint64_t kind);

/// Keeps `bytes` for this kind, if they are fewer than before. Of more kinds than there is room for the latest are
/// kept. `kind` isn't 0. Under the ledger's lock.
void note_context(Header& header, uint64_t kind, uint64_t bytes);

}  // namespace cuslice::ledger
