// SPDX-License-Identifier: Apache-2.0
// With whom a process shares its slices, and how it becomes a member.
#include "virtual_gpu/gpu/sharing.h"

#include <memory>
#include <string>
#include <vector>

#include "config/load.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

struct Sharing {
    explicit Sharing(const LedgerFolder& folder) { plan.folder.assign(folder.path); }

    bool join(uint64_t job_limit, uint64_t group_limit = ledger::kNoLimitBytes, SharedBudget* outer = nullptr,
              uint64_t rule_limit = ledger::kNoLimitBytes) {
        const GpuSharing::Slice slice{kUuid, kCapacity, job_limit, group_limit, rule_limit};
        const auto in_use = [](void* self) -> uint64_t {
            Sharing& it = *static_cast<Sharing*>(self);
            return it.asked++ < it.unsettled ? it.outside : 0;
        };
        return sharing->join(plan, slice, outer, in_use, this, refusal.get());
    }
    uint64_t used() {
        auto watched = std::make_unique<ledger::Watched>();
        return sharing->watch(plan, kUuid, watched.get()) ? watched->used : ~0ull;
    }

    SharingPlan plan;
    std::unique_ptr<GpuSharing> sharing = std::make_unique<GpuSharing>();
    std::unique_ptr<Refusal> refusal = std::make_unique<Refusal>();
    unsigned asked = 0;
    // The first `unsettled` looks find `outside` in use, which nobody in the ledger has been charged for.
    unsigned unsettled = 0;
    uint64_t outside = 0;  // bytes
};

}  // namespace

TEST_CASE("the ledger in which the launcher made a job is read for each GPU, and a damaged list has none") {
    const std::string one = "GPU-00000000-1111-2222-3333-444444444444",
                      other = "GPU-99999999-1111-2222-3333-444444444444";
    const std::string made = "@" + one + "=00000000000000ff@" + other + "=0123456789abcdef";
    CHECK(ledger_of_job(made, one) == 0xff);
    CHECK(ledger_of_job(made, other) == 0x0123456789abcdef);
    CHECK(ledger_of_job(made, "GPU-30aa") == 0);
    CHECK(ledger_of_job("", one) == 0);
    CHECK(ledger_of_job("@" + one + "=ff", one) == 0);
    CHECK(ledger_of_job("@" + one + ":00000000000000ff", one) == 0);
    CHECK(ledger_of_job("@@" + one + "=00000000000000ff@", one) == 0xff);
}

TEST_CASE("the jobs that the launcher handed on are read from the outermost in, as many as there can be") {
    Settings settings;
    const std::string line = std::string(kJobVariable) + "=a@GPU-1=0000000000000001,b,c,d";
    const char* const environment[] = {line.c_str(), nullptr};
    const SharingPlan plan = plan_sharing(settings, environment);
    REQUIRE(plan.job_count == SharingPlan::kMaxJobs);
    CHECK(plan.jobs[0].view() == "a");
    CHECK(plan.jobs[1].view() == "b");
    CHECK(plan.jobs[2].view() == "c");
    CHECK(plan.made_in.view() == "@GPU-1=0000000000000001");
    CHECK(plan.any());
    const char* const nothing[] = {nullptr};
    CHECK_FALSE(plan_sharing(settings, nothing).any());
}

TEST_CASE("a process that shares with nobody joins nothing, and asks nobody") {
    const LedgerFolder folder;
    Sharing alone(folder);
    CHECK(alone.join(kGiB));
    CHECK_FALSE(alone.sharing->joined());
    CHECK(alone.asked == 0);
    CHECK(alone.used() == ~0ull);
    CHECK_FALSE(alone.sharing->take_back_dead());
}

TEST_CASE("a process is a member of its job and its group, once, each with its limit") {
    const LedgerFolder folder;
    Sharing member(folder);
    member.plan.jobs[member.plan.job_count++].assign("job");
    member.plan.group.assign("lab");
    for (int i = 0; i < 2; i++) {
        REQUIRE(member.join(4 * kGiB, 3 * kGiB));
        CHECK(member.sharing->joined());
        CHECK(member.sharing->budget().limit() == 3 * kGiB);
    }
    CHECK(member.asked == 1);
    REQUIRE(member.sharing->budget().reserve(kGiB, nullptr));
    CHECK(member.used() == kGiB);
    CHECK_FALSE(member.sharing->budget().reserve(2 * kGiB + 512, nullptr));
    CHECK(member.used() == kGiB);
}

TEST_CASE("what a group's limit is can be seen before it is joined, and becomes that of members who joined earlier") {
    const LedgerFolder folder;
    Sharing first(folder), second(folder), watcher(folder);
    for (Sharing* one : {&first, &second, &watcher})
        one->plan.group.assign("lab");
    const auto seen = [&] { return watcher.sharing->group_limit(watcher.plan, kUuid); };
    CHECK(seen() == ledger::kNoLimitBytes);  // there is no ledger yet
    REQUIRE(first.join(ledger::kNoLimitBytes));
    CHECK(first.sharing->joined());
    CHECK(first.sharing->budget().limit() == ledger::kNoLimitBytes);
    REQUIRE(first.sharing->budget().found_group());
    CHECK_FALSE(first.sharing->budget().found_group()->known);
    REQUIRE(first.sharing->budget().reserve(2 * kGiB, nullptr));
    CHECK(seen() == ledger::kNoLimitBytes);
    REQUIRE(second.join(ledger::kNoLimitBytes, 3 * kGiB));
    CHECK(seen() == 3 * kGiB);
    CHECK(second.sharing->budget().found_group()->limit == ledger::kNoLimitBytes);
    CHECK(second.sharing->budget().found_group()->used == 2 * kGiB);
    CHECK(first.sharing->budget().limit() == 3 * kGiB);
    CHECK_FALSE(first.sharing->budget().reserve(kGiB + 512, nullptr));
    CHECK(second.sharing->budget().reserve(kGiB, nullptr));
    Sharing none(folder);
    CHECK(none.sharing->group_limit(none.plan, kUuid) == ledger::kNoLimitBytes);
}

TEST_CASE("a slice that others stand in the way of is refused, nothing is joined, and later it can be had") {
    const LedgerFolder folder;
    Sharing late(folder);
    late.plan.jobs[late.plan.job_count++].assign("job");
    {
        // The group has 12 GiB reserved of 16.
        Child other(member(folder, 12 * kGiB, 12 * kGiB));
        REQUIRE(other.ask(Step::join) == Answer::joined);
        for (int i = 0; i < 2; i++) {
            CHECK_FALSE(late.join(8 * kGiB));
            CHECK(late.refusal->how == ledger::Joined::refused);
            CHECK(late.refusal->asked == 8 * kGiB);
            CHECK(late.refusal->available == 4 * kGiB);
            CHECK_FALSE(late.refusal->waiting);
            CHECK_FALSE(late.sharing->joined());
        }
    }
    CHECK(late.join(8 * kGiB));
    CHECK(late.sharing->joined());
    CHECK(late.sharing->budget().room() == 8 * kGiB);
}

TEST_CASE("a context that another job is making doesn't stand in the way of a slice that fits beside the job's") {
    const LedgerFolder folder;
    Child other(member(folder, 12 * kGiB, 12 * kGiB));
    REQUIRE(other.ask(Step::join) == Answer::joined);
    // Nobody looks twice at what the jobs can't have, or at a slice that wouldn't fit anyway.
    const auto refused_at_once = [&](uint64_t outside, uint64_t bytes) {
        Sharing refused(folder);
        refused.plan.jobs[refused.plan.job_count++].assign("another");
        refused.outside = outside;
        refused.unsettled = ~0u;
        CHECK_FALSE(refused.join(bytes));
        CHECK(refused.asked == 1);
    };
    refused_at_once(12 * kGiB + 1, kGiB);
    refused_at_once(kGiB, 4 * kGiB + 1);
    // Memory that stays in use is somebody's, and stands in the way.
    Sharing stays(folder);
    stays.plan.jobs[stays.plan.job_count++].assign("another");
    stays.outside = kGiB;
    stays.unsettled = ~0u;
    CHECK_FALSE(stays.join(4 * kGiB));
    CHECK(stays.asked > 1);
    CHECK(stays.refusal->available == 3 * kGiB);
    Sharing late(folder);
    late.plan.jobs[late.plan.job_count++].assign("job");
    late.outside = kGiB;
    // It is charged, or given up, while this one looks again.
    late.unsettled = 3;
    CHECK(late.join(4 * kGiB));
    CHECK(late.asked == 4);
}

TEST_CASE("what a part is charged is charged to the whole GPU it lies in") {
    const LedgerFolder folder;
    Sharing whole(folder), part(folder);
    whole.plan.jobs[whole.plan.job_count++].assign("whole");
    part.plan.jobs[part.plan.job_count++].assign("part");
    REQUIRE(whole.join(2 * kGiB));
    const GpuSharing::Slice slice{"GPU-part", kCapacity, 3 * kGiB, ledger::kNoLimitBytes};
    REQUIRE(part.sharing->join(
        part.plan, slice, &whole.sharing->budget(), [](void*) -> uint64_t { return 0; }, nullptr, part.refusal.get()));
    REQUIRE(part.sharing->budget().reserve(kGiB, nullptr));
    CHECK(whole.used() == kGiB);
    CHECK_FALSE(part.sharing->budget().reserve(2 * kGiB, nullptr));
    CHECK(whole.used() == kGiB);
    part.sharing->forget();
    CHECK_FALSE(part.sharing->joined());
}

TEST_CASE(
    "a process is a member of its rule's account, beside its job and group, and the rule's limit is the system's") {
    const LedgerFolder folder;
    Sharing member(folder), plain(folder);
    member.plan.jobs[member.plan.job_count++].assign("job");
    member.plan.group.assign("lab");
    member.plan.rule.assign("students@0123456789abcdef");
    CHECK(member.plan.rule_name() == "students");
    plain.plan.rule = member.plan.rule;
    CHECK(plain.plan.any());
    REQUIRE(member.join(4 * kGiB, 5 * kGiB, nullptr, 3 * kGiB));
    CHECK(member.sharing->budget().limit() == 3 * kGiB);
    REQUIRE(member.sharing->budget().reserve(2 * kGiB, nullptr));
    LimitError why;
    CHECK_FALSE(member.sharing->budget().reserve(2 * kGiB, &why));
    CHECK(why.of == LimitOf::rule);
    CHECK(why.limit == 3 * kGiB);
    CHECK(plain.used() == 2 * kGiB);
    // Without a limit on this GPU there is nothing to share.
    Sharing none(folder);
    none.plan.rule = member.plan.rule;
    REQUIRE(none.join(ledger::kNoLimitBytes));
    CHECK_FALSE(none.sharing->joined());
    // The last that the system says holds for all.
    REQUIRE(plain.join(kGiB, ledger::kNoLimitBytes, nullptr, 6 * kGiB));
    CHECK(member.sharing->budget().limit() == 4 * kGiB);
    CHECK(plain.sharing->budget().room() == 4 * kGiB);
}

TEST_CASE("a rule's account ends with its last member, so that one for each of many cgroups finds room") {
    const LedgerFolder folder;
    for (unsigned i = 0; i < 2 * ledger::kAccounts; i++) {
        Place place;
        CAPTURE(i);
        REQUIRE(place.open(folder));
        REQUIRE(place.join(("a@" + std::to_string(i)).c_str(), kGiB, 0, ledger::AccountKind::rule) ==
                ledger::Joined::yes);
        place.ledger.close();
    }
}

TEST_CASE("where a rule's account can't be had nothing goes on alone") {
    const LedgerFolder folder;
    Sharing late(folder);
    late.plan.jobs[late.plan.job_count++].assign("job");
    late.plan.rule.assign("students");
    {
        std::vector<std::unique_ptr<Place>> others;
        for (ledger::Joined joined = ledger::Joined::yes; joined == ledger::Joined::yes;) {
            others.push_back(std::make_unique<Place>());
            REQUIRE(others.back()->open(folder));
            const std::string name = "other" + std::to_string(others.size());
            joined = others.back()->join(name.c_str(), kGiB, 0, ledger::AccountKind::job);
        }
        for (int i = 0; i < 2; i++) {
            CHECK_FALSE(late.join(kGiB, ledger::kNoLimitBytes, nullptr, kGiB));
            CHECK(late.refusal->how == ledger::Joined::unreachable);
        }
        for (const auto& other : others)
            other->ledger.close();
    }
    CHECK(late.join(kGiB, ledger::kNoLimitBytes, nullptr, kGiB));
    CHECK(late.sharing->joined());
}

TEST_CASE("a part without accounts of its own is charged in those of the whole GPU") {
    const LedgerFolder folder;
    Sharing whole(folder), part(folder);
    whole.plan.rule.assign("students");
    REQUIRE(whole.join(ledger::kNoLimitBytes, ledger::kNoLimitBytes, nullptr, 2 * kGiB));
    REQUIRE(part.join(kGiB, ledger::kNoLimitBytes, &whole.sharing->budget()));
    CHECK(part.sharing->joined());
    CHECK_FALSE(part.sharing->take_back_dead());
    CHECK(part.sharing->budget().limit() == 2 * kGiB);
    REQUIRE(part.sharing->budget().reserve(kGiB, nullptr));
    CHECK(whole.used() == kGiB);
    CHECK(part.sharing->budget().room() == kGiB);
    LimitError why;
    CHECK_FALSE(part.sharing->budget().reserve(2 * kGiB, &why));
    CHECK(why.of == LimitOf::rule);
    part.sharing->forget();
    CHECK_FALSE(part.sharing->joined());
}

TEST_CASE("where the ledger has no account left nothing goes on alone, and it does once there is one") {
    const LedgerFolder folder;
    std::vector<std::unique_ptr<Place>> others;
    ledger::Joined joined = ledger::Joined::yes;
    while (joined == ledger::Joined::yes) {
        REQUIRE(others.size() < 1000);
        const std::string name = "other" + std::to_string(others.size());
        others.push_back(std::make_unique<Place>());
        REQUIRE(others.back()->open(folder));
        joined = others.back()->join(name.c_str(), kGiB, 0, ledger::AccountKind::job);
    }
    REQUIRE(joined == ledger::Joined::unavailable);
    Sharing group(folder), job(folder), nothing(folder);
    group.plan.group.assign("lab");
    CHECK_FALSE(group.join(ledger::kNoLimitBytes));
    CHECK(group.refusal->how == ledger::Joined::unreachable);
    job.plan.jobs[job.plan.job_count++].assign("job");
    for (int i = 0; i < 2; i++) {
        CHECK_FALSE(job.join(kGiB));
        CHECK(job.refusal->how == ledger::Joined::unreachable);
        CHECK_FALSE(job.sharing->joined());
    }
    // A job without a limit shares none.
    nothing.plan.jobs[nothing.plan.job_count++].assign("job");
    CHECK(nothing.join(ledger::kNoLimitBytes));
    for (const auto& other : others)
        other->ledger.close();
    CHECK(job.join(kGiB));
    CHECK(job.sharing->joined());
}

TEST_CASE("where there is no ledger there is nothing to watch, and watching makes none") {
    const LedgerFolder folder;
    Sharing watcher(folder);
    watcher.plan.group.assign("lab");
    CHECK(watcher.used() == ~0ull);
    CHECK_FALSE(std::filesystem::exists(folder.file()));
    // One that others have, without the group, is as good as none, until the group is there.
    Place other;
    REQUIRE(other.open(folder));
    CHECK(watcher.used() == ~0ull);
    REQUIRE(other.join("lab", 8 * kGiB) == ledger::Joined::yes);
    REQUIRE(other.membership.reserve(kGiB, 0, nullptr));
    CHECK(watcher.used() == kGiB);
    CHECK_FALSE(watcher.sharing->joined());
}
