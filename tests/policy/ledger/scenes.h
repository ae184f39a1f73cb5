// SPDX-License-Identifier: Apache-2.0
// Ledgers with somebody in them, for tests of processes that stop before a step (tests/stepped_child.h).
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "tests/catch.h"
#include "tests/policy/ledger/left_over.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

namespace cuslice::tests {

using ledger::AccountKind;
using ledger::Joined;

// Where nothing is as a test needs it. In a child that is killed anyway the exit status says so.
inline void require(bool holds) {
    if (!holds)
        _exit(1);
}

inline bool join_lab(Place& place, const LedgerFolder& folder) {
    return place.open(folder) && place.join("lab", 8 * kGiB) == Joined::yes;
}

inline Joined reserve_job(Place& place, const LedgerFolder& folder, const char* name, uint64_t bytes) {
    return place.open(folder) ? place.join(name, bytes, bytes, AccountKind::job) : Joined::unavailable;
}

// So many bytes could be reserved, as somebody sees it who only looks.
inline uint64_t available(const LedgerFolder& folder) {
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.ledger.look(0, &place.committed, &place.available));
    place.ledger.close();
    return place.available;
}

// Somebody who lives through it all: a member of the group "lab", of which it holds 1 GiB.
struct Scene {
    Scene() {
        REQUIRE(join_lab(survivor, folder));
        REQUIRE(survivor.membership.reserve(kGiB, 0, nullptr));
        available_before = available(folder);
    }
    LedgerFolder folder;
    Place survivor;
    uint64_t available_before = 0;
};

// Besides somebody of the same group who holds 5 GiB and doesn't look at the file's name.
struct SceneWithIdle : Scene {
    SceneWithIdle() {
        REQUIRE(idle.ask(Step::join) == Answer::joined);
        REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    }
    // While another stands still; refused where that one has taken the file out of use.
    void reserve_more() { idle_holds += idle.ask(Step::reserve_1_gib) == Answer::reserved ? kGiB : 0; }
    Child idle{member(folder)};
    uint64_t idle_holds = 5 * kGiB;
};

// Besides a job of 10 GiB.
struct SceneWithJob : Scene {
    SceneWithJob() {
        REQUIRE(reserve_job(holder, folder, "holder", 10 * kGiB) == Joined::yes);
        available_before -= 10 * kGiB;
    }
    Place holder;
};

inline void leave(SceneWithJob& scene) {
    scene.holder.ledger.close();
    scene.available_before += 10 * kGiB;
}

// Everybody has left, and somebody has looked.
inline void check_empty(const LedgerFolder& folder) {
    Place watcher;
    REQUIRE(watcher.open(folder));
    watcher.ledger.take_back_dead();
    watcher.ledger.close();
    const Mapped mapped(folder);
    const LeftOver left = left_over(*mapped.file);
    CAPTURE(left.bytes, left.reserved, left.members, left.tickets, left.stripes, left.accounts);
    CHECK(left.nothing());
}

// All that is left is the survivor's own gibibyte, in the ledger and of the GPU.
inline void check_nothing_left(Scene& scene) {
    scene.survivor.ledger.take_back_dead();
    CHECK(scene.survivor.membership.used() == kGiB);
    CHECK(scene.survivor.membership.held() == kGiB);
    CHECK(available(scene.folder) == scene.available_before);
    scene.survivor.membership.change(-static_cast<int64_t>(kGiB));
    scene.survivor.ledger.close();
    check_empty(scene.folder);
}

// All that is held is the idle one's and the survivor's gibibyte, whoever looks, in the file that is there now.
inline void check_idle_counted(SceneWithIdle& scene) {
    const uint64_t held = scene.idle_holds + kGiB;
    const auto newcomer_counts = [&] {
        Place newcomer;
        REQUIRE(join_lab(newcomer, scene.folder));
        CHECK(newcomer.membership.used() == held);
        CHECK_FALSE(newcomer.membership.reserve(8 * kGiB - held + 1, 0, nullptr));
        newcomer.ledger.close();
    };
    newcomer_counts();
    scene.survivor.ledger.take_back_dead();
    CHECK(scene.survivor.membership.used() == held);
    newcomer_counts();
    // It finds the new file by itself, or is killed before.
    static bool finds = false;
    finds = !finds;
    if (finds) {
        scene.idle.ask(Step::take_back_dead);
        CHECK(scene.idle.ask(Step::read_total) == gib(held / kGiB));
        CHECK(scene.idle.ask(Step::give_back_5_gib) == Answer::given_back);
        CHECK(scene.survivor.membership.used() == held - 5 * kGiB);
    }
    scene.idle.kill();
    check_nothing_left(scene);
}

}  // namespace cuslice::tests
