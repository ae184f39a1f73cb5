// SPDX-License-Identifier: Apache-2.0
// The user's number as all who share the folder know it: inside a container it differs from the one outside.
#include "policy/ledger/users.h"

#include <sched.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/skip.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

struct Outside {
    unsigned number = 0;
    bool mapped = false;
    bool operator==(const Outside&) const = default;
};

Outside outside(const char* map, unsigned inside) {
    Outside found;
    found.number = outside_of(map, inside, &found.mapped);
    return found;
}

// Steps of a process that becomes root of a user namespace, and its answers.
struct RootStep {
    static constexpr char enter_namespace = 's';
    static constexpr char read_own_number = 'u';
    static constexpr char compare_with_outside = 'b';
};

struct RootAnswer {
    static constexpr char entered = 'y';
    static constexpr char not_entered = 's';
    static constexpr char number_outside = 'y';
    static constexpr char number_of_other = 'o';
    static constexpr char same_user = '1';
    static constexpr char another_number = '0';
};

// A process that is root in a user namespace of its own, in which there is nobody else, and `user` outside.
std::function<char(char)> root_inside(unsigned user, std::function<char(char)> answer) {
    return [user, answer = std::move(answer), begun = false](char step) mutable {
        if (begun)
            return answer(step);
        begun = true;
        if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)
            return RootAnswer::not_entered;
        return cuslice::tests::enter_namespaces(CLONE_NEWUSER) ? RootAnswer::entered : RootAnswer::not_entered;
    };
}

}  // namespace

TEST_CASE("a user's number outside is what the map says, and the same where there is no map or no place in it") {
    const char* const map =
        "         0       1000          1\n      1001     100000         10\n    2000       5000  1\n";
    CHECK(outside(map, 0) == Outside{1000, true});
    CHECK(outside(map, 1) == Outside{1, false});
    CHECK(outside(map, 1000) == Outside{1000, false});
    CHECK(outside(map, 1001) == Outside{100000, true});
    CHECK(outside(map, 1010) == Outside{100009, true});
    CHECK(outside(map, 1011) == Outside{1011, false});
    CHECK(outside(map, 2000) == Outside{5000, true});
    CHECK(outside("0 0 4294967295\n", 0xfffffffe) == Outside{0xfffffffe, true});
    CHECK(outside("0 7 1", 0) == Outside{7, true});
    CHECK(outside("", 812) == Outside{812, true});
}

TEST_CASE("where everybody has a number a user's is its own, whatever is in the folder") {
    std::string map;
    std::getline(std::ifstream("/proc/self/uid_map"), map);
    if (!outside(map.c_str(), 0xfffffffe).mapped) {
        skip("this user namespace has not everybody in it");
        return;
    }
    const LedgerFolder folder;
    std::ofstream(folder.file_of(geteuid() + 1)) << "x";
    CHECK(this_user(folder.path.c_str()) == geteuid());
    CHECK(belongs_to(geteuid(), geteuid()));
    CHECK_FALSE(belongs_to(geteuid() + 1, geteuid()));
    CHECK_FALSE(belongs_to(geteuid(), geteuid() + 1));
}

TEST_CASE("root of a user namespace is the user outside, whatever the folder has that it may only list") {
    constexpr unsigned kUser = 60001, kOther = 60002;
    if (!can_be_other_users() || !can_unshare(CLONE_NEWUSER, kUser))
        return;
    const LedgerFolder folder;
    Child inside(root_inside(kUser, [&](char step) {
        const bool compares = step == RootStep::compare_with_outside;
        const unsigned number = compares ? belongs_to(0, kUser) : this_user(folder.path.c_str());
        if (number == kUser)
            return RootAnswer::number_outside;
        if (number == kOther)
            return RootAnswer::number_of_other;
        return number == 1 ? RootAnswer::same_user : RootAnswer::another_number;
    }));
    REQUIRE(inside.ask(RootStep::enter_namespace) == RootAnswer::entered);
    CHECK(inside.ask(RootStep::read_own_number) == RootAnswer::number_outside);
    CHECK(inside.ask(RootStep::compare_with_outside) == RootAnswer::same_user);
    // Another user's ledger is not its own, be it that nobody can look at it.
    std::ofstream(folder.file_of(kOther)) << "x";
    REQUIRE(chown(folder.file_of(kOther).c_str(), kOther, kOther) == 0);
    REQUIRE(chown(folder.path.c_str(), kOther, kOther) == 0);
    for (const mode_t mode : {0755u, 0744u}) {
        CAPTURE(mode);
        REQUIRE(chmod(folder.path.c_str(), mode) == 0);
        CHECK(inside.ask(RootStep::read_own_number) == RootAnswer::number_outside);
    }
    // One that is its own has its number, as a namespace within another one has no other way to know it.
    REQUIRE(chmod(folder.path.c_str(), 0755) == 0);
    REQUIRE(chown(folder.file_of(kOther).c_str(), kUser, kUser) == 0);
    CHECK(inside.ask(RootStep::read_own_number) == RootAnswer::number_of_other);
    // But no folder, nor any name that is none of a ledger's.
    std::filesystem::remove(folder.file_of(kOther));
    std::filesystem::create_directory(folder.file_of(kOther));
    REQUIRE(chown(folder.file_of(kOther).c_str(), kUser, kUser) == 0);
    const std::string other = folder.path + "/" + std::to_string(kOther) + "-GPU";
    std::ofstream(other) << "x";
    REQUIRE(chown(other.c_str(), kUser, kUser) == 0);
    CHECK(inside.ask(RootStep::read_own_number) == RootAnswer::number_outside);
}
