// SPDX-License-Identifier: Apache-2.0
// Cached memory that processes with a limit in common request of each other.
#include "virtual_gpu/gpu/siblings.h"

#include <cstdint>
#include <memory>

#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr uint64_t kGroupLimit = 8 * kGiB;

unsigned nvml_starts = 0;
bool no_nvml() {
    nvml_starts++;
    return false;
}

/// One of the members of a group with a limit of 8 GiB.
struct Member {
    explicit Member(const LedgerFolder& folder, uint64_t job_limit = ledger::kNoLimitBytes) {
        slice.limited = true;
        slice.limit = 6 * kGiB;
        slice.job_limit = job_limit;
        slice.group_limit = kGroupLimit;
        plan.folder.assign(folder.path);
        plan.group.assign("lab");
        physical->open({}, kCapacity);
        it->open(slice, *physical, budget, lowered, no_nvml);
    }
    bool join() {
        const auto refusal = std::make_unique<Refusal>();
        if (!it->join(plan, kUuid, true, refusal.get()))
            return false;
        const LockGuard lock(physical->mutex());
        return it->share_budget(plan);
    }
    void take(uint64_t bytes) {
        REQUIRE(budget.reserve(bytes));
        budget.commit();
    }

    Slice slice;
    SharingPlan plan;
    Budget budget;
    LoweredLimit lowered;
    std::unique_ptr<PhysicalGpu> physical = std::make_unique<PhysicalGpu>();
    std::unique_ptr<Siblings> it = std::make_unique<Siblings>();
};

/// One that holds 6 GiB, of which it says that it keeps 4 GiB, and another one that holds 2 GiB.
struct TwoMembers {
    TwoMembers() {
        REQUIRE(caching.join());
        REQUIRE(short_of.join());
        caching.take(6 * kGiB);
        caching.it->publish_reclaimable(4 * kGiB);
        short_of.take(2 * kGiB);
    }
    LedgerFolder folder;
    Member caching{folder}, short_of{folder};
};

}  // namespace

TEST_CASE("a process that shares its slice with nobody requests nothing, and nothing is requested of it") {
    const LedgerFolder folder;
    Member alone(folder);
    CHECK_FALSE(alone.it->joined());
    CHECK(alone.it->own_limit(6 * kGiB) == 6 * kGiB);
    CHECK_FALSE(alone.it->trim_requested());
    CHECK_FALSE(alone.it->wait_until(kGiB, [] {
        FAIL("nothing is waited for");
        return true;
    }));
    CHECK_FALSE(alone.it->found_group());
}

TEST_CASE("within a group's limit a process has its own, where no job has that") {
    const LedgerFolder folder;
    Member limited(folder, 3 * kGiB), free(folder);
    REQUIRE(limited.join());
    REQUIRE(free.join());
    CHECK(limited.it->own_limit(6 * kGiB) == 3 * kGiB);
    CHECK(free.it->own_limit(6 * kGiB) == Budget::kUnlimited);
    CHECK(free.it->found_group()->limit == kGroupLimit);
    CHECK(Siblings::any_joined());
    limited.take(2 * kGiB);
    CHECK(free.it->room(0) == 6 * kGiB);
    CHECK(free.it->room(kCapacity - kGiB) == kGiB);
    // The budget is charged to the accounts once.
    const LockGuard lock(free.physical->mutex());
    CHECK_FALSE(free.it->share_budget(free.plan));
}

TEST_CASE("cached memory that is requested of another process is waited for, and each request is seen once") {
    TwoMembers two;
    CHECK_FALSE(two.caching.it->trim_requested());
    unsigned asked = 0;
    const auto fits = [&] {
        asked++;
        if (two.caching.it->trim_requested()) {
            CHECK_FALSE(two.caching.it->trim_requested());
            two.caching.budget.release(kGiB);
        }
        return two.short_of.budget.reserve(kGiB);
    };
    CHECK(two.short_of.it->wait_until(kGiB, fits));
    CHECK(asked == 1);
    // Nobody requests its own.
    CHECK_FALSE(two.short_of.it->trim_requested());
}

TEST_CASE("a process that gives nothing back isn't waited for again as long as nothing has changed there") {
    TwoMembers two;
    unsigned asked = 0;
    const auto never = [&] {
        asked++;
        return false;
    };
    CHECK_FALSE(two.short_of.it->wait_until(kGiB, never));
    CHECK(asked > 1);
    asked = 0;
    CHECK_FALSE(two.short_of.it->wait_until(kGiB, never));
    CHECK(asked == 0);
    two.caching.it->publish_reclaimable(3 * kGiB);
    CHECK_FALSE(two.short_of.it->wait_until(kGiB, never));
    CHECK(asked > 1);
    // More than the others hold isn't waited for either, and tried once: it may have been given back in between.
    asked = 0;
    CHECK_FALSE(two.short_of.it->wait_until(7 * kGiB, never));
    CHECK(asked == 1);
}

TEST_CASE("a forked child is no member, and joins by itself") {
    const LedgerFolder folder;
    Member parent(folder);
    REQUIRE(parent.join());
    parent.it->become_member();
    Child child([&](char) {
        parent.budget.unshare();
        parent.it->forget();
        return !parent.it->joined() && !parent.it->is_member() && parent.join() ? Answer::joined : Answer::refused;
    });
    CHECK(child.ask(Step::join) == Answer::joined);
    CHECK(parent.it->joined());
}

TEST_CASE("without NVML's figures nothing counts as given back by others") {
    TwoMembers two;
    const unsigned starts = nvml_starts;
    CHECK_FALSE(two.short_of.it->given_back().reserve(kGiB, nullptr));
    CHECK_FALSE(two.short_of.it->given_back().within_limit());
    CHECK(nvml_starts == starts + 2);
    CHECK(two.short_of.budget.used() == 2 * kGiB);
    // Nor is NVML asked where it is the process's own limit that stands in the way, or nothing is shared.
    Member limited(two.folder, kGiB), alone(two.folder);
    REQUIRE(limited.join());
    limited.budget.adjust(0, kGiB + Budget::kUnit);
    CHECK_FALSE(limited.it->given_back().within_limit());
    CHECK_FALSE(alone.it->given_back().within_limit());
    CHECK_FALSE(alone.it->given_back().reserve(kGiB, nullptr));
    CHECK(nvml_starts == starts + 2);
}
