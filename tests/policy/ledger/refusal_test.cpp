// SPDX-License-Identifier: Apache-2.0
// Messages that explain why a program gets no slice.
#include "policy/ledger/refusal.h"

#include <cstring>
#include <memory>
#include <string>

#include "policy/base/kernel_clock.h"
#include "tests/catch.h"

using namespace cuslice;
using namespace cuslice::ledger;

namespace {

constexpr uint64_t kGiB = 1ull << 30, kMiB = 1 << 20, kSecond = 1'000'000'000;

// Far enough from where the next one begins: a test may be slow.
uint64_t half_past(uint64_t hours) { return now_realtime() - (hours * 3600 + 1800) * kSecond; }

Holder holder(int32_t pid, unsigned user, uint64_t reserved, uint64_t used) {
    Holder made;
    made.pid = pid;
    made.user = user;
    made.reserved = reserved;
    made.used = used;
    made.since = half_past(5);
    strcpy(made.command, "python");
    return made;
}

void add(Refusal& refusal, const Holder& one) {
    refusal.committed.holders[refusal.committed.count++] = one;
    refusal.committed.used += one.used;
}

const Telling kNames{[](unsigned user) { return user == 7 ? FixedText<64>("bob") : FixedText<64>(); }};

std::string left(const Refusal& refusal, const Telling& telling = {}) {
    return std::string(describe_left(refusal, telling).view());
}

}  // namespace

TEST_CASE("an age is told in whole seconds, minutes or hours, of which there are two at least") {
    const auto age = [](uint64_t seconds) { return std::string(format_age(seconds).view()); };
    CHECK(age(0) == "0 s");
    CHECK(age(119) == "119 s");
    CHECK(age(120) == "2 min");
    CHECK(age(179) == "2 min");
    CHECK(age(7199) == "119 min");
    CHECK(age(7200) == "2 h");
    CHECK(age(360'000) == "100 h");
}

TEST_CASE("what is yet to come has no age") {
    CHECK(seconds_since(now_realtime() + 3600 * kSecond) == 0);
    CHECK(seconds_since(~0ull) == 0);
    const uint64_t hours = seconds_since(half_past(3)) / 3600;
    CHECK(hours == 3);
}

TEST_CASE("what is left is told with who holds the rest: what is reserved, or what is used where that is more") {
    const auto refusal = std::make_unique<Refusal>();
    refusal->available = 12 * kGiB;
    CHECK(left(*refusal) == "12.0 GiB left");
    add(*refusal, holder(812, 7, 16 * kGiB, 2 * kGiB));
    CHECK(left(*refusal) == "12.0 GiB left. Held: pid 812 (python, user 7) 16.0 GiB for 5 h");
    CHECK(left(*refusal, kNames) == "12.0 GiB left. Held: pid 812 (python, user bob) 16.0 GiB for 5 h");
    const Telling commands{nullptr, [](const ProcessIdentity& process, unsigned user, std::string_view name) {
                               CommandText text("/x\x1b ");
                               text.append(static_cast<uint64_t>(process.pid)).append(user);
                               return text.append(" ").append(name);
                           }};
    CHECK(left(*refusal, commands) == "12.0 GiB left. Held: pid 812 (/x\\x1b 8127 python, user 7) 16.0 GiB for 5 h");
    add(*refusal, holder(813, 8, 0, 20 * kGiB));
    CHECK(left(*refusal, kNames) ==
          "12.0 GiB left. Held: pid 812 (python, user bob) 16.0 GiB for 5 h; "
          "pid 813 (python, user 8) 20.0 GiB for 5 h");
    // Only what no member uses is outside.
    refusal->in_use = 22 * kGiB;
    CHECK(left(*refusal).find("outside") == std::string::npos);
    refusal->in_use = 33 * kGiB;
    CHECK(left(*refusal).ends_with(" for 5 h; outside cuslice 11.0 GiB"));
    const auto alone = std::make_unique<Refusal>();
    alone->in_use = 11 * kGiB;
    CHECK(left(*alone) == "0 bytes left. Held: outside cuslice 11.0 GiB");
}

TEST_CASE("five holders are named, and the others counted") {
    const auto refusal = std::make_unique<Refusal>();
    for (int i = 0; i < 5; i++)
        add(*refusal, holder(800 + i, 1, kGiB, 0));
    CHECK(left(*refusal).find("more") == std::string::npos);
    CHECK(left(*refusal).find("pid 804") != std::string::npos);
    add(*refusal, holder(805, 1, kGiB, 0));
    CHECK(left(*refusal).find("pid 805") == std::string::npos);
    CHECK(left(*refusal).ends_with("; 1 more"));
    refusal->committed.left_out = 10;
    CHECK(left(*refusal).ends_with("; 11 more"));
}

TEST_CASE("where something is kept for somebody who waits it is told for whom, and of how much") {
    const auto refusal = std::make_unique<Refusal>();
    Waiter& waiter = refusal->committed.kept_for;
    waiter.pid = 900;
    waiter.user = 7;
    waiter.bytes = 30 * kGiB;
    waiter.since = half_past(2);
    strcpy(waiter.command, "train");
    refusal->committed.kept = 12 * kGiB;
    CHECK(left(*refusal, kNames) ==
          "12.0 GiB left, reserved for pid 900 (train, user bob), which has waited for 30.0 GiB for 2 h");
    refusal->available = 4 * kGiB;
    CHECK(left(*refusal) ==
          "16.0 GiB left, 12.0 GiB of it reserved for pid 900 (train, user 7), which has waited for 30.0 GiB for 2 h");
}

TEST_CASE("who has not waited is advised to, or to ask for what there is") {
    const auto refusal = std::make_unique<Refusal>();
    refusal->asked = 16 * kGiB;
    const auto said = [&] { return std::string(describe_refusal(*refusal).view()); };
    refusal->available = 12 * kGiB + kMiB - 1;
    CHECK(said() == "16.0 GiB requested, 12.0 GiB left. Try --wait or --limit 12288MiB");
    refusal->available = kMiB;
    CHECK(said().ends_with("left. Try --wait or --limit 1MiB"));
    refusal->available = kMiB - 1;
    CHECK(said().ends_with("left. Try --wait"));
    refusal->waiting = true;
    CHECK(said().ends_with("left"));
}
