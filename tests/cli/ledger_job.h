// SPDX-License-Identifier: Apache-2.0
// A job that reserves nothing, in the ledger of a GPU in a folder, as long as the object lives.
#pragma once

#include <string>

#include "policy/ledger/ledger.h"
#include "tests/catch.h"

namespace cuslice::tests {

class LedgerJob {
  public:
    LedgerJob(const std::string& folder, const std::string& gpu) {
        ledger::Request request;
        request.name = "job";
        request.limit = 1 << 20;
        ledger::Committed committed;
        uint64_t available = 0;
        REQUIRE(ledger_.open(folder.c_str(), gpu.c_str(), 1 << 30, false, nullptr));
        REQUIRE(ledger_.join(request, 0, &membership_, &committed, &available, nullptr) == ledger::Joined::yes);
    }

  private:
    ledger::Ledger ledger_;
    ledger::Membership membership_;
};

}  // namespace cuslice::tests
