// SPDX-License-Identifier: Apache-2.0
// A user's ledger as somebody opens it who makes none.
#include "policy/ledger/own_file.h"

#include <signal.h>

#include <fstream>

#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// The error of opening; nothing where it has opened the ledger.
std::string open_existing_in(const LedgerFolder& folder) {
    Ledger ledger;
    LedgerError why;
    const bool opened = ledger.open_existing(folder.path.c_str(), kUuid, &why);
    CHECK(opened == (why.text[0] == '\0'));
    CHECK(opened == ledger.opened());
    ledger.close();
    return why.text;
}

}  // namespace

TEST_CASE("a ledger that is there is opened, and one that isn't is not made") {
    const LedgerFolder folder;
    CHECK(open_existing_in(folder) == "can't open " + folder.file() + ": No such file or directory");
    CHECK(folder.count() == 0);
    Place place;
    REQUIRE(place.open(folder));
    CHECK(open_existing_in(folder).empty());
}

TEST_CASE("a ledger that is damaged is not opened, and stays as it is") {
    const LedgerFolder folder;
    std::ofstream(folder.file()) << "no ledger";
    CHECK(open_existing_in(folder) == folder.file() + " is damaged");
    CHECK(std::filesystem::file_size(folder.file()) == 9);
}

TEST_CASE("a ledger that another process has a lease of is not opened, and nobody waits for it") {
    const LedgerFolder folder;
    constexpr char kLease = 'l';
    {
        Place place;
        REQUIRE(place.open(folder));
        place.ledger.close();
    }
    Child leases([&folder](char) {
        signal(SIGIO, SIG_IGN);  // told to give up its lease
        const int file = open(folder.file().c_str(), O_RDWR | O_CLOEXEC);
        return fcntl(file, F_SETLEASE, F_WRLCK) == 0 ? Answer::locked : Answer::not_locked;
    });
    REQUIRE(leases.ask(kLease) == Answer::locked);
    CHECK(open_existing_in(folder) == "can't open " + folder.file() + ": Resource temporarily unavailable");
    leases.kill();
    CHECK(open_existing_in(folder).empty());
}
