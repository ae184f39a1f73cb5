// SPDX-License-Identifier: Apache-2.0
// How a group is found by whoever joins it, whose limit holds, and what is said of it. Members are children of this
// test.
#include "policy/ledger/group_terms.h"

#include <cstring>
#include <fstream>
#include <string>

#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kMiB = 1 << 20;

GroupTerms known(uint64_t limit, uint64_t used = 0, bool lives = true) {
    GroupTerms terms;
    terms.known = true;
    terms.lives = lives;
    terms.limit = limit;
    terms.used = used;
    return terms;
}

GroupTerms similar_to(const char* name) {
    GroupTerms terms;
    strcpy(terms.similar, name);
    return terms;
}

std::string told(const GroupTerms& terms, uint64_t wanted, const char* place = "GPU 0") {
    return std::string(describe_group("lab", place, terms, wanted).view());
}

void add_group(File& file, uint32_t index, const char* name, AccountKind kind = AccountKind::group) {
    file.accounts[index].kind = kind;
    strcpy(file.accounts[index].name, name);
    file.accounts[index].state.store(AccountState::open);
}

}  // namespace

TEST_CASE("the first limit of a group counts, whichever member brings it") {
    const LedgerFolder folder;
    Child first(member(folder, kNoLimitBytes)), second(member(folder, kNoLimitBytes));
    REQUIRE(first.ask(Step::join) == Answer::joined);
    REQUIRE(second.ask(Step::join) == Answer::joined);
    CHECK(first.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(second.ask(Step::reserve_5_gib) == Answer::reserved);
    Child bringer(member(folder, 8 * kGiB)), later(member(folder, 16 * kGiB));
    REQUIRE(bringer.ask(Step::join) == Answer::joined);
    REQUIRE(later.ask(Step::join) == Answer::joined);
    // The ten that are held stay, and nothing more is had.
    CHECK(first.ask(Step::read_total) == gib(0) + 10);
    for (Child* child : {&first, &second, &bringer, &later})
        CHECK(child->ask(Step::reserve_1_gib) == Answer::refused);
    CHECK(second.ask(Step::give_back_5_gib) == Answer::given_back);
    for (Child* child : {&first, &second, &bringer})
        CHECK(child->ask(Step::reserve_1_gib) == Answer::reserved);
    CHECK(later.ask(Step::reserve_1_gib) == Answer::refused);
    bringer.kill();
    CHECK(later.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(later.ask(Step::reserve_1_gib) == Answer::reserved);
    CHECK(later.ask(Step::reserve_1_gib) == Answer::refused);
}

TEST_CASE("a limit that was brought is the group's in the file that takes a lost one's place") {
    const LedgerFolder folder;
    const bool removed = GENERATE(false, true);
    CAPTURE(removed);
    Child first(member(folder, kNoLimitBytes)), bringer(member(folder, 8 * kGiB));
    REQUIRE(first.ask(Step::join) == Answer::joined);
    REQUIRE(bringer.ask(Step::join) == Answer::joined);
    const bool first_looks = GENERATE(false, true);
    if (removed)
        std::filesystem::remove(folder.file());
    else
        std::fstream(folder.file(), std::ios::in | std::ios::out | std::ios::binary) << std::string(600, 'e');
    Child& earlier = first_looks ? first : bringer;
    Child& later = first_looks ? bringer : first;
    earlier.ask(Step::take_back_dead);
    later.ask(Step::take_back_dead);
    CHECK(first.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(bringer.ask(Step::reserve_5_gib) == Answer::refused);
    CHECK(first.ask(Step::reserve_5_gib) == Answer::refused);
}

TEST_CASE("a member knows how it found its group") {
    const LedgerFolder folder;
    const auto found = [&](const char* name, uint64_t limit) {
        Place place;
        REQUIRE(place.open(folder));
        REQUIRE(place.join(name, limit) == Joined::yes);
        place.ledger.close();
        return place.membership.found();
    };
    CHECK_FALSE(found("lab", kNoLimitBytes).known);
    Child holder(member(folder, kNoLimitBytes));
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    REQUIRE(holder.ask(Step::reserve_5_gib) == Answer::reserved);
    const GroupTerms terms = found("lab", 8 * kGiB);
    CHECK(terms.known);
    CHECK(terms.lives);
    CHECK(terms.limit == kNoLimitBytes);
    CHECK(terms.used == 5 * kGiB);
    CHECK(found("lab", 9 * kGiB).limit == 8 * kGiB);
    CHECK(std::string(found("lag", kGiB).similar) == "lab");
    // It is remembered when its members have left, and has its next first member's limit.
    holder.kill();
    const GroupTerms left = found("lab", kGiB);
    CHECK(left.known);
    CHECK_FALSE(left.lives);
    CHECK(left.limit == 8 * kGiB);
    CHECK(found("lab", kNoLimitBytes).limit == kGiB);
}

TEST_CASE("a group is similar to another one whose name differs in a letter") {
    const auto file = std::make_unique<File>();
    const auto similar = [&](const char* name) {
        const Account* const found = similar_group(*file, name);
        return std::string(found ? found->name : "");
    };
    CHECK(similar("lab").empty());
    add_group(*file, 3, "lab");
    add_group(*file, 4, "training");
    add_group(*file, 5, "job-of-alice", AccountKind::job);
    for (const char* name : {"la", "labs", "lap", "alb", "Lab"})
        CHECK(similar(name) == "lab");
    for (const char* name : {"lab", "l", "slabs", "bal", "ob-of-alice"})
        CHECK(similar(name).empty());
    CHECK(similar("traning") == "training");
    file->accounts[3].state.store(AccountState::free);
    CHECK(similar("labs").empty());
}

TEST_CASE("a program is told which limit of its group holds, unless it is the one that it brings") {
    CHECK(told(known(8 * kGiB, 2 * kGiB), kNoLimitBytes) ==
          "group lab: on GPU 0 this program shares the group's limit of 8192.0 MiB, of which 2048.0 MiB are in use");
    CHECK(told(known(8 * kGiB), 8 * kGiB).empty());
    CHECK(told(known(8 * kGiB), 1500 * kMiB) ==
          "group lab: on GPU 0 its limit is 8192.0 MiB and stays so; the 1500.0 MiB given here are ignored. To change "
          "it: cuslice set --group lab --limit 1500MiB");
    CHECK(told(known(8 * kGiB), kMiB + 1024).ends_with(" --limit 1025KiB"));
    // The first member of an empty group sets the limit.
    CHECK(told(known(8 * kGiB, 0, false), kGiB).empty());
    CHECK(told(known(8 * kGiB, 0, false), kNoLimitBytes).find("shares the group's limit of 8192.0 MiB") !=
          std::string::npos);
}

TEST_CASE("a limit that is brought to a group which had none is told, and that nothing is taken away for it") {
    CHECK(told(known(kNoLimitBytes, kGiB), 2 * kGiB) ==
          "group lab: on GPU 0 it had no limit: from now on all of its programs share 2048.0 MiB");
    CHECK(told(known(kNoLimitBytes, 2 * kGiB), kGiB) ==
          "group lab: on GPU 0 it had no limit: from now on all of its programs share 1024.0 MiB; 2048.0 MiB are in "
          "use already, so nothing is taken away, and nothing more granted until it is less");
}

TEST_CASE("a group without a limit, and one with nearly another one's name, get a line") {
    CHECK(told({}, kGiB).empty());
    CHECK(told({}, kNoLimitBytes, "") == "group lab: it is new and has no limit: set one with --group-limit SIZE");
    CHECK(told({}, kNoLimitBytes) == "group lab: on GPU 0 it is new and has no limit: set one with --group-limit SIZE");
    CHECK(told(known(kNoLimitBytes), kNoLimitBytes) ==
          "group lab: on GPU 0 it has no limit: set one with --group-limit SIZE");
    CHECK(told(similar_to("lap"), kGiB, "") == "group lab: it is new; did you mean lap?");
    CHECK(told(similar_to("lap"), kNoLimitBytes, "") ==
          "group lab: it is new and has no limit; did you mean lap? Else set one with --group-limit SIZE");
}
