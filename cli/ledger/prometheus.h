// SPDX-License-Identifier: Apache-2.0
// Output of `cuslice ps --prometheus`: the ledgers in the text format that Prometheus reads.
#pragma once

#include <string>

#include "cli/ledger/holders.h"

namespace cuslice::cli {

/// Gauges in the text format 0.0.4, with HELP and TYPE, sizes in bytes: for each GPU that has a ledger, and for each
/// job and group on it. Each series comes once, whatever other users have written into their ledgers. Pure but for the
/// names of users, for which see user_name().
std::string prometheus_text(const Holders& found);

}  // namespace cuslice::cli
