// SPDX-License-Identifier: Apache-2.0
// The file of a user's leases, and processes that meet in it.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/lease/place.h"

using namespace cuslice::tests;
namespace lease = cuslice::lease;
namespace ledger = cuslice::ledger;

namespace {

std::string path_of(const LedgerFolder& folder, unsigned number = 0) {
    char path[ledger::kPathBytes];
    return lease::lease_path(folder.path.c_str(), geteuid(), number, path) ? path : "";
}

}  // namespace

TEST_CASE("the first process makes the file for its user alone, and others find it") {
    const LedgerFolder folder;
    const auto one = lease_place(), other = lease_place();
    REQUIRE(one->join(folder, 1));
    struct stat info {};
    REQUIRE(stat(path_of(folder).c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    CHECK(info.st_blocks * 512 >= static_cast<off_t>(sizeof(lease::File)));
    REQUIRE(other->join(folder, 2));
    CHECK(one->acquire().granted);
    CHECK_FALSE(other->process.lease().held());
    const ReadLease read(folder);
    CHECK(read.whole);
    CHECK(read.members() == 2);
    CHECK(read.holders() == 1);
}

TEST_CASE("a file with garbage is replaced, and its users learn that it is lost") {
    const LedgerFolder folder;
    const auto one = lease_place();
    REQUIRE(one->join(folder, 1));
    CHECK_FALSE(one->process.is_lost());
    const bool short_file = GENERATE(true, false);
    const std::string garbage(short_file ? 100 : sizeof(lease::File), 'x');
    std::filesystem::remove(path_of(folder));
    std::ofstream(path_of(folder)) << garbage;
    const auto other = lease_place();
    REQUIRE(other->join(folder, 2));
    CHECK(other->acquire().granted);
    CHECK(one->process.is_lost());
    one->process.close();
    CHECK(one->join(folder, 1));
    CHECK_FALSE(one->process.is_lost());
}

TEST_CASE("a name that another user has taken is passed over") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    std::ofstream(path_of(folder)) << "not ours";
    REQUIRE(chown(path_of(folder).c_str(), 12345, 12345) == 0);
    const auto one = lease_place();
    REQUIRE(one->join(folder, 1));
    CHECK(std::filesystem::exists(path_of(folder, 1)));
    CHECK(ReadLease(folder).whole);
}

TEST_CASE("what is no regular file is no lease, and nothing waits for it") {
    const LedgerFolder folder;
    REQUIRE(mkfifo(path_of(folder).c_str(), 0600) == 0);
    const auto one = lease_place();
    CHECK(one->join(folder, 1));
    CHECK(one->acquire().granted);
}

TEST_CASE("where there is no lease, none is read") {
    const LedgerFolder folder;
    CHECK_FALSE(ReadLease(folder).there);
}

TEST_CASE("a forked child is not its parent's member, and the parent's gate is no business of its") {
    const LedgerFolder folder;
    const auto one = lease_place();
    REQUIRE(one->join(folder, 1));
    REQUIRE(one->acquire().granted);
    const pid_t child = fork();
    if (child == 0) {
        one->process.forget();
        const bool open = one->process.lease().held();
        const bool joins = one->join(folder, 2);
        _exit(open && joins && !one->process.lease().held() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(one->process.lease().held());
    CHECK(ReadLease(folder).holders() == 1);
}

TEST_CASE("a thread that waits is woken by the one who passes the lease on") {
    const LedgerFolder folder;
    const auto one = lease_place();
    REQUIRE(one->join(folder, 1));
    REQUIRE(one->acquire().granted);
    const pid_t child = fork();
    if (child == 0) {
        const auto other = lease_place();
        _exit(other->join(folder, 2) && other->acquire().granted ? 0 : 1);
    }
    lease::Lease& self = one->process.lease();
    while (!cuslice::lease::is_wanted(self.gate()))
        self.await_change(self.gate(), now() + kMillisecond);
    self.pass();
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(self.acquire(now() + kLongEnough).granted);
}
