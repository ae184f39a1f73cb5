// SPDX-License-Identifier: Apache-2.0
// Processes of one ledger that are killed before every step that others could notice (tests/stepped_child.h): while
// they come, wait, leave, take back what a dead one held, and put back a file that was removed. And while one stands
// still there, others go on.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/scenes.h"
#include "tests/policy/ledger/steps.h"
#include "tests/policy/rounds.h"
#include "tests/stepped_child.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// One step in `usual` is tried, fewer under a sanitizer, from another one on in each run; and each of them where
// CUSLICE_TEST_FULL is set.
struct Stride {
    explicit Stride(unsigned usual) : every(std::getenv("CUSLICE_TEST_FULL") != nullptr ? 1 : usual * kSlower) {}
    unsigned every;
    unsigned first = 1 + static_cast<unsigned>(getpid()) % every;
};

// Kills a child that does `work` before its steps, each time in a scene of its own, which `check` looks at afterwards;
// `meanwhile` happens while it stands still.
template <typename Scenery>
void kill_before_steps(
    Stride stride, const std::function<void(Scenery&)>& work, const std::function<void(Scenery&)>& check,
    const std::function<void(Scenery&)>& meanwhile = [](Scenery&) {}) {
    if (!can_trace())
        return;
    bool ended = false;
    for (unsigned step = stride.first; !ended; step += stride.every) {
        Scenery scene;
        SteppedChild child([&] { work(scene); });
        ended = !child.go_to(step);
        INFO("killed before step " << step << ", " << child.about_to());
        if (ended) {
            REQUIRE(child.exit_code() == 0);
            CHECK(child.steps() >= 20);
        } else {
            meanwhile(scene);
        }
        child.kill();
        check(scene);
    }
}

void idle_reserves(SceneWithIdle& scene) { scene.reserve_more(); }

}  // namespace

TEST_CASE("killed before any step of its admission, a job has reserved nothing and holds nothing") {
    kill_before_steps<Scene>(
        Stride(4),
        [](Scene& scene) {
            Place place;
            SteppedChild::from_here();
            require(reserve_job(place, scene.folder, "job", 6 * kGiB) == Joined::yes);
            require(place.membership.reserve(2 * kGiB, 0, nullptr));
            place.membership.change(-static_cast<int64_t>(kGiB));
        },
        check_nothing_left);
}

TEST_CASE("killed before any step on its way into a group and out of it, a process holds nothing of the group's") {
    kill_before_steps<Scene>(
        Stride(4),
        [](Scene& scene) {
            Place place;
            SteppedChild::from_here();
            require(join_lab(place, scene.folder));
            require(place.membership.reserve(5 * kGiB, 0, nullptr));
            place.membership.change(-static_cast<int64_t>(5 * kGiB));
            place.ledger.close();
        },
        check_nothing_left);
}

TEST_CASE("killed before any step of making the file, a process leaves one that others can use, or none") {
    struct Nothing {
        LedgerFolder folder;
    };
    kill_before_steps<Nothing>(
        Stride(4),
        [](Nothing& scene) {
            Place place;
            SteppedChild::from_here();
            require(reserve_job(place, scene.folder, "job", 6 * kGiB) == Joined::yes);
        },
        [](Nothing& scene) {
            Place next;
            CHECK(reserve_job(next, scene.folder, "next", kCapacity) == Joined::yes);
            next.ledger.close();
            check_empty(scene.folder);
        });
}

TEST_CASE("killed before any step of its time in the queue, a process is nobody for whom something is kept") {
    kill_before_steps<SceneWithJob>(
        Stride(4),
        [](SceneWithJob& scene) {
            Place place;
            SteppedChild::from_here();
            require(place.open(scene.folder));
            place.ledger.queue_up(8 * kGiB, nullptr);
            require(place.ledger.look(0, &place.committed, &place.available));
            require(place.ledger.queued());
            place.ledger.leave_queue();
        },
        [](SceneWithJob& scene) {
            Place other;
            CHECK(reserve_job(other, scene.folder, "other", scene.available_before) == Joined::yes);
            other.ledger.close();
            leave(scene);
            check_nothing_left(scene);
        });
}

TEST_CASE("killed before any step of being served from the queue, a process has no ticket and nothing reserved") {
    kill_before_steps<SceneWithJob>(
        Stride(4),
        [](SceneWithJob& scene) {
            Place place;
            require(place.open(scene.folder));
            place.ledger.queue_up(4 * kGiB, nullptr);
            require(place.ledger.look(0, &place.committed, &place.available));
            SteppedChild::from_here();
            require(place.join("job", 4 * kGiB, 4 * kGiB, AccountKind::job) == Joined::yes);
            require(!place.ledger.queued());
        },
        [](SceneWithJob& scene) {
            CHECK(available(scene.folder) == scene.available_before);
            leave(scene);
            check_nothing_left(scene);
        });
}

TEST_CASE("killed before any step of taking back what a dead process held, a process leaves the rest to the next") {
    struct SceneWithDead : SceneWithIdle {
        SceneWithDead() { idle.kill(); }
    };
    kill_before_steps<SceneWithDead>(
        Stride(4),
        [](SceneWithDead& scene) {
            Place place;
            require(place.open(scene.folder));
            SteppedChild::from_here();
            place.ledger.take_back_dead();
        },
        check_nothing_left);
}

TEST_CASE("killed before any step of carrying a removed file's members into a new one, a newcomer loses nobody") {
    kill_before_steps<SceneWithIdle>(
        Stride(12),
        [](SceneWithIdle& scene) {
            std::filesystem::remove(scene.folder.file());
            Place place;
            SteppedChild::from_here();
            require(join_lab(place, scene.folder));
            require(place.membership.used() == 6 * kGiB);
            require(place.membership.reserve(2 * kGiB, 0, nullptr));
        },
        check_idle_counted, idle_reserves);
}

TEST_CASE("killed before any step of putting back a file that was removed, a member loses nobody") {
    kill_before_steps<SceneWithIdle>(
        Stride(12),
        [](SceneWithIdle& scene) {
            Place place;
            require(join_lab(place, scene.folder));
            require(place.membership.reserve(kGiB, 0, nullptr));
            std::filesystem::remove(scene.folder.file());
            SteppedChild::from_here();
            place.ledger.take_back_dead();
            require(place.membership.used() == 7 * kGiB);
        },
        check_idle_counted, idle_reserves);
}

// Two jobs of which one fits: the first stands still before a step while the second is admitted, and goes on then. Two
// users have two files, which nobody can lock together.
TEST_CASE("of two jobs that don't both fit one is admitted, wherever one stands still meanwhile", "[slow]") {
    const bool of_two_users = GENERATE(false, true);
    if (!can_trace() || (of_two_users && !can_be_other_users()))
        return;
    CAPTURE(of_two_users);
    unsigned first_won = 0;
    unsigned second_won = 0;
    const Stride stride(8);
    for (unsigned step = stride.first;; step += stride.every) {
        const Scene scene;
        REQUIRE(chmod(scene.folder.path.c_str(), 01777) == 0);
        Child second([&](char) {
            Place place;
            if (of_two_users && (setresgid(60002, 60002, 60002) != 0 || setresuid(60002, 60002, 60002) != 0))
                return Answer::unknown;
            return answer_of(reserve_job(place, scene.folder, "second", 10 * kGiB));
        });
        SteppedChild first([&] {
            Place place;
            SteppedChild::from_here();
            _exit(answer_of(reserve_job(place, scene.folder, "first", 10 * kGiB)));
        });
        if (!first.go_to(step))
            break;
        INFO("one stands still before step " << step << ", " << first.about_to());
        const char answer = second.ask(Step::join);
        // Nobody waits for ever for one that stands still.
        first.finish();
        CAPTURE(answer, first.exit_code());
        const int admitted = (answer == Answer::joined) + (first.exit_code() == Answer::joined);
        const int refused = (answer == Answer::refused) + (first.exit_code() == Answer::refused);
        CHECK(admitted <= 1);
        CHECK(refused <= 1);
        first_won += first.exit_code() == Answer::joined;
        second_won += answer == Answer::joined;
    }
    if (kSlower > 1)
        return;  // few steps are tried
    CHECK(first_won > 0);
    CHECK(second_won > 0);
}
