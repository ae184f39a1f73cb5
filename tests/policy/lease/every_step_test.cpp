// SPDX-License-Identifier: Apache-2.0
// Processes that are killed, or stand still, before every step of theirs that others could notice
// (tests/stepped_child.h): while they come, take the lease, pass it on, wait for it, and pass others by.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "policy/lease/edit.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/lease/place.h"
#include "tests/policy/rounds.h"
#include "tests/stepped_child.h"

using namespace cuslice::tests;
namespace lease = cuslice::lease;

namespace {

constexpr uint64_t kFirstJob = 1, kOtherJob = 2;

void require(bool holds) {
    if (!holds)
        _exit(1);
}

// One step in so many is tried, from another one on in each run; each of them where CUSLICE_TEST_FULL is set.
unsigned stride(unsigned usual) {
    return std::getenv("CUSLICE_TEST_FULL") != nullptr ? 1 : usual * static_cast<unsigned>(kSlower);
}

enum class Fate : uint8_t { killed, stands_still };

struct Scene {
    LedgerFolder folder;
};

// The other process of the tests: another job's, which has the lease in time whatever the first one did.
void check_other_gets_it(Scene& scene) {
    const auto other = lease_place();
    REQUIRE(other->join(scene.folder, kOtherJob));
    const uint64_t before = now();
    const lease::Answer answer = other->acquire();
    INFO("answer " << lease::text_of(answer.reason) << " after " << (now() - before) / kMillisecond << " ms");
    CHECK(answer.granted);
    CHECK(other->process.lease().held());
    other->process.close();
}

// A process with nobody's help finds the places of the dead, and the next to come takes them back.
void check_nothing_left(Scene& scene) {
    {
        const auto last = lease_place();
        REQUIRE(last->join(scene.folder, kOtherJob));
        last->process.close();
    }
    const ReadLease left(scene.folder);
    CHECK(left.whole);
    CHECK(left.jobs() == 0);
    CHECK(left.members() == 0);
}

void at_every_step(Fate fate, unsigned usual, const std::function<void(Scene&)>& work) {
    if (!can_trace())
        return;
    bool ended = false;
    const unsigned every = stride(usual);
    for (unsigned step = 1 + static_cast<unsigned>(getpid()) % every; !ended; step += every) {
        Scene scene;
        SteppedChild child([&] { work(scene); });
        ended = !child.go_to(step);
        INFO("before step " << step << ", " << child.about_to());
        if (ended) {
            REQUIRE(child.exit_code() == 0);
            CHECK(child.steps() >= 20);
        }
        if (fate == Fate::killed)
            child.kill();
        check_other_gets_it(scene);
        if (!child.ended())
            child.finish();
        if (fate == Fate::stands_still)
            CHECK(child.exit_code() == 0);
        check_nothing_left(scene);
    }
}

void take_and_pass(Scene& scene) {
    const auto self = lease_place();
    SteppedChild::from_here();
    require(self->join(scene.folder, kFirstJob));
    require(self->acquire().granted);
    self->process.lease().charge(0, kMillisecond);
    self->process.lease().pass();
    require(self->acquire().granted);
    self->process.close();
}

// Where another process of the tests has it, in a job of its own, and is killed.
void pass_by_dead_holder(Scene& scene) {
    const pid_t holder = fork();
    if (holder == 0) {
        const auto place = lease_place();
        require(place->join(scene.folder, 3) && place->acquire().granted);
        kill(getpid(), SIGKILL);
    }
    waitpid(holder, nullptr, 0);
    const auto self = lease_place();
    SteppedChild::from_here();
    require(self->join(scene.folder, kFirstJob));
    require(self->acquire().granted);
    self->process.close();
}

// Where another process has it, and stands still.
void pass_by_stopped_holder(Scene& scene) {
    const pid_t holder = fork();
    if (holder == 0) {
        const auto place = lease_place();
        require(place->join(scene.folder, 3) && place->acquire().granted);
        raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    waitpid(holder, &status, WUNTRACED);
    const auto self = lease_place();
    require(self->join(scene.folder, kFirstJob));
    SteppedChild::from_here();
    require(self->acquire().granted);
    self->process.close();
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
}

// Changes its own job's share, as somebody who is no member would.
void edit_share(Scene& scene) {
    const auto self = lease_place();
    require(self->join(scene.folder, kFirstJob));
    SteppedChild::from_here();
    lease::LeaseEditor editor;
    require(editor.open(scene.folder.path.c_str(), nullptr));
    require(editor.set_share(kFirstJob, kUuid, {.weight = 10}) == lease::Edited::yes);
    editor.close();
    self->process.close();
}

}  // namespace

TEST_CASE("killed before any step of its turn, a process leaves a lease that the next one gets") {
    at_every_step(Fate::killed, 1, take_and_pass);
}

TEST_CASE("standing still before any step of its turn, a process is passed by, and goes on") {
    at_every_step(Fate::stands_still, 1, take_and_pass);
}

TEST_CASE("killed before any step of taking out a dead holder, a process leaves a lease that the next one gets") {
    at_every_step(Fate::killed, 1, pass_by_dead_holder);
}

TEST_CASE("standing still before any step of passing by a stopped holder, a process is passed by itself") {
    at_every_step(Fate::stands_still, 1, pass_by_stopped_holder);
}

TEST_CASE("killed before any step of changing a share, a process leaves a lease that the next one gets") {
    at_every_step(Fate::killed, 1, edit_share);
}

TEST_CASE("standing still before any step of changing a share, a process is waited for by nobody") {
    at_every_step(Fate::stands_still, 1, edit_share);
}
