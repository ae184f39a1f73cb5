// SPDX-License-Identifier: Apache-2.0
// Text that a user writes over a ledger of his own: anything may stand there.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "policy/ledger/layout.h"

namespace cuslice::tests::model {

/// Processes whose places may be forged: pids here, and numbers of presences that are in the folder.
struct Known {
    std::vector<int> pids;
    std::vector<uint64_t> presences;
};

/// Overwrites something: an account, a member, a ticket, the header, what somebody holds, or any bytes. Keeps to the
/// part of the file that has space, so that nobody's room goes. Says what.
std::string forge(ledger::File& file, const Known& known, std::mt19937_64& random);

}  // namespace cuslice::tests::model
