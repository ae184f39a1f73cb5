// SPDX-License-Identifier: Apache-2.0
// Two processes at one ledger, each of which stands still before a step of its own (tests/stepped_child.h) while the
// other goes on: orders of events that a scheduler hardly ever makes.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
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

// An exit status: the ledger could not be had in time, as the other one stood still with its lock.
constexpr int kUnavailable = 3;

void require_place(bool has) {
    if (!has)
        _exit(kUnavailable);
}

std::mt19937& random_steps() {
    const char* const seed = std::getenv("CUSLICE_TEST_SEED");
    static std::mt19937 random(static_cast<unsigned>(seed != nullptr ? std::stoul(seed) : getpid()));
    return random;
}

// The first child comes to a step of its own, then the second one to one of its own; then the first goes on to its end,
// and the second after it. The numbers of the steps are drawn by CUSLICE_TEST_SEED, or another seed in each run.
// `check` looks at what is left. Either may be refused the ledger, as the other one stood still with its lock.
template <typename Scenery>
void meet(int times, const std::function<void(Scenery&)>& first_work, const std::function<void(Scenery&)>& second_work,
          const std::function<void(Scenery&)>& check) {
    unsigned most[] = {400, 400};
    for (int i = 0; i < times; i++) {
        Scenery scene;
        SteppedChild first([&] { first_work(scene); });
        SteppedChild second([&] { second_work(scene); });
        const unsigned first_step = 1 + static_cast<unsigned>(random_steps()()) % most[0];
        const unsigned second_step = 1 + static_cast<unsigned>(random_steps()()) % most[1];
        if (!first.go_to(first_step))
            most[0] = first.steps();
        if (!second.go_to(second_step))
            most[1] = second.steps();
        INFO("the first stood still before step " << first_step << ", " << first.about_to()
                                                  << "; the second before step " << second_step << ", "
                                                  << second.about_to());
        first.finish();
        second.finish();
        for (const SteppedChild* child : {&first, &second})
            CHECK((child->exit_code() == 0 || child->exit_code() == kUnavailable));
        check(scene);
    }
}

void join_and_leave(Scene& scene) {
    Place place;
    SteppedChild::from_here();
    require_place(join_lab(place, scene.folder));
    place.membership.reserve(kGiB, 0, nullptr);
    place.ledger.close();
}

void look_for_dead(Scene& scene) {
    Place place;
    require(place.open(scene.folder));
    SteppedChild::from_here();
    place.ledger.take_back_dead();
}

// A member whose file is removed: it goes on in another one.
void notice_removal(SceneWithIdle& scene) {
    Place place;
    SteppedChild::from_here();
    require_place(join_lab(place, scene.folder));
    place.membership.reserve(kGiB, 0, nullptr);
    std::filesystem::remove(scene.folder.file());
    place.ledger.take_back_dead();
}

struct SceneWithRemoved : SceneWithIdle {
    SceneWithRemoved() { std::filesystem::remove(folder.file()); }
};

struct SceneWithDead : SceneWithIdle {
    SceneWithDead() { idle.kill(); }
};

// Where one waits for the lock that the other one has, it waits for half a second and more, and one that removes a file
// for twice as long.
const int kShort = rounds(40, 1000);
const int kLong = rounds(10, 400);
const int kLongest = rounds(10, 100);

}  // namespace

TEST_CASE("two processes that take back what a dead one held take it back once", "[slow]") {
    if (!can_trace())
        return;
    meet<SceneWithDead>(kShort, look_for_dead, look_for_dead, check_nothing_left);
}

TEST_CASE("a process that takes back and one that comes and goes leave nothing behind", "[slow]") {
    if (!can_trace())
        return;
    meet<SceneWithDead>(kShort, look_for_dead, join_and_leave, check_nothing_left);
}

TEST_CASE("two processes that find the file removed make one, and lose nobody", "[slow]") {
    if (!can_trace())
        return;
    const auto come = [](SceneWithRemoved& scene) { join_and_leave(scene); };
    meet<SceneWithRemoved>(kLong, come, come, check_idle_counted);
}

TEST_CASE("a file that is removed while another process comes loses nobody", "[slow]") {
    if (!can_trace())
        return;
    const auto come = [](SceneWithIdle& scene) { join_and_leave(scene); };
    meet<SceneWithIdle>(kLongest, notice_removal, come, check_idle_counted);
}

TEST_CASE("a file that two processes remove loses nobody", "[slow]") {
    if (!can_trace())
        return;
    meet<SceneWithIdle>(kLongest, notice_removal, notice_removal, check_idle_counted);
}
