// SPDX-License-Identifier: Apache-2.0
// Other users' files, where there are more of them than can be read in time.
#include "policy/ledger/foreign.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr unsigned kStranger = 60002;
constexpr unsigned kFiles = 12'000;

// A folder full of files of a stranger's and, in stretches between them, of this user's.
void fill(const LedgerFolder& folder, unsigned strangers_share, unsigned of) {
    constexpr unsigned kStretch = 64;
    for (unsigned i = 0; i < kFiles; i++) {
        const std::string path = folder.path + "/entry-" + std::to_string(i);
        std::ofstream(path) << "x";
        if (i / kStretch % of < strangers_share)
            REQUIRE(lchown(path.c_str(), kStranger, kStranger) == 0);
    }
}

// Errors of readings whose time is over when some of the folder has been read, by ever longer times, until one reads
// all of it.
std::vector<LedgerError> failures_of_readings(const LedgerFolder& folder) {
    LedgerFile ours;
    std::vector<LedgerError> failures;
    LedgerError why;
    REQUIRE(ours.open(folder.path.c_str(), kUuid, kCapacity, false, &why));
    bool all = false;
    for (unsigned milliseconds = 0; !all; milliseconds += 1 + milliseconds / 4) {
        REQUIRE(milliseconds < 60'000);
        Committed committed;
        bool undecided = false;
        why = {};
        all = add_foreign(ours, kCapacity, Deadline(milliseconds), Claims::open, &committed, &undecided, &why);
        if (!all)
            failures.push_back(why);
    }
    const cuslice::DisablingLockGuard guard(ours.mutex());
    ours.close(true);
    return failures;
}

}  // namespace

TEST_CASE("whoever owns most of what can't be read in time is named, unless it is the reader") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    const unsigned strangers_share = GENERATE(0u, 1u, 2u, 3u);
    fill(folder, strangers_share, 3);
    const std::string common = folder.path + " has more files than can be read in time";
    const std::vector<LedgerError> failures = failures_of_readings(folder);
    for (const LedgerError& failure : failures) {
        const std::string said = failure.text;
        CAPTURE(said);
        CHECK(said == (failure.stranger ? common + ", most of them user " + std::to_string(kStranger) + "'s" : common));
        CHECK(failure.stranger_user == (failure.stranger ? kStranger : 0));
    }
    // The first stretches may be either's. A long reading has seen many, unless other work had the processor: one of
    // the longest has not met that.
    REQUIRE(failures.size() > 1);
    const auto longest = failures.end() - static_cast<ptrdiff_t>(std::min<size_t>(failures.size() - 1, 4));
    CHECK(std::any_of(longest, failures.end(),
                      [&](const LedgerError& failure) { return failure.stranger == (strangers_share > 1); }));
}
