// SPDX-License-Identifier: Apache-2.0
// A user's ledger as somebody opens it who makes none, and one that may not be made as it has to be.
#include "policy/ledger/own_file.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/refused_calls.h"

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

TEST_CASE("a ledger that others may not read is not made, and it is said why") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    const bool readable = GENERATE(false, true);  // without fchmod, by the umask alone
    CAPTURE(readable);
    const pid_t child = fork();
    if (child == 0) {
        const Living self(folder);
        umask(readable ? 022 : 077);
        if (!refuse_call(SYS_fchmod, EPERM))
            _exit(2);
        OpenFile out;
        char path[kPathBytes];
        LedgerError why;
        const bool made = open_own(self.locker(), kUuid, kCapacity, false, Deadline(500), &out, path, &why, nullptr);
        const std::string said = why.text;
        const bool told = said.starts_with("can't let others read ") && said.ends_with(": Operation not permitted");
        _exit(made != readable || told == readable);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(folder.count() == readable);
}
