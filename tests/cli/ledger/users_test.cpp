// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/users.h"

#include <cstring>

#include "tests/catch.h"

namespace cuslice::tests {

TEST_CASE("who stands in the way is named, and by number where nobody has it") {
    ledger::LedgerError failure;
    std::strcpy(failure.text, "in /dev/shm/0/user 0 user 0 has taken every name that this user's ledger could have");
    CHECK(cli::told(failure) == failure.text);
    failure.stranger = true;
    CHECK(cli::told(failure) ==
          "in /dev/shm/0/user 0 user root has taken every name that this user's ledger could have");
    failure.stranger_user = 4'000'000'001;
    std::strcpy(failure.text, "x has more files than can be read in time, most of them user 4000000001's");
    CHECK(cli::told(failure) == failure.text);
}

}  // namespace cuslice::tests
