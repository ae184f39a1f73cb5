// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "policy/ledger/folder.h"

namespace cuslice::cli {

/// The user's name, or the number where nobody has it. Not thread-safe.
std::string user_name(unsigned user);

/// Why a ledger can't be used, with the name of the user who stands in the way. Not thread-safe.
std::string told(const ledger::LedgerError& failure);

}  // namespace cuslice::cli
