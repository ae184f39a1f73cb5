// SPDX-License-Identifier: Apache-2.0
// Threads that are in the driver where a capture forbids it: a capture that begins waits for them, and they don't go
// there while one is known.
#include "virtual_gpu/cache/capture_askers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <latch>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/sleeping.h"
#include "tests/virtual_gpu/cache/capture_scene.h"

using namespace cuslice;
using namespace cuslice::tests;
using By = CaptureTracker::By;

namespace {

constexpr uint64_t kNoEnd = 1'000'000'000'000'000;
using Asking = CaptureTracker::Asking;

/// How a thread counts itself in: by the lock, or by a store to a record of its own.
enum class Way { lock, store };

/// Null: this thread is to go by the lock.
CaptureTracker::Inside* enter_at_once() {
    CaptureTracker::Inside* inside = nullptr;
    return CaptureTracker::enter_at_once(&inside) ? inside : nullptr;
}

/// Another thread, which is in the driver until it is told to go on.
struct InDriver {
    InDriver(CaptureScene& scene, Way way)
        : thread([&scene, way, this] {
              MadeUpDriver::stack() = {scene.own};
              if (way == Way::store)
                  scene.captures.list_thread();
              // In a build in which nobody can go by a store, this one doesn't either.
              CaptureTracker::Inside* const at_once = way == Way::store ? enter_at_once() : nullptr;
              if (at_once) {
                  stay();
                  CaptureTracker::leave_at_once(at_once);
              } else {
                  const Asking asking(scene.captures, Asking::Sure::no);
                  stay();
              }
              scene.captures.thread_ends();
          }) {
        inside.wait();
    }
    ~InDriver() {
        leave();
        thread.join();
    }
    void leave() {
        if (!left.exchange(true))
            go_on.count_down();
    }

    std::latch inside{1}, go_on{1};
    std::atomic<bool> left{false};

  private:
    void stay() {
        inside.count_down();
        go_on.wait();
    }
    std::thread thread;
};

}  // namespace

TEST_CASE("a capture that begins waits for a thread that is in the driver, and lets none in from then on") {
    const Way way = GENERATE(Way::lock, Way::store);
    OwnerLock::prepare();
    CaptureScene scene;
    scene.captures.set_patience(kNoEnd);
    InDriver other(scene, way);
    std::atomic<bool> begun{false};
    std::atomic<pid_t> beginner{0};
    bool was_inside = true;
    std::thread begins([&] {
        MadeUpDriver::stack() = {scene.own};
        beginner = this_thread();
        scene.captures.may_begin(kOne, By::known);
        begun = true;
        was_inside = !other.left;
    });
    while (!beginner)
        std::this_thread::yield();
    await_sleep(beginner);
    CHECK_FALSE(begun);
    CHECK_FALSE(Asking(scene.captures, Asking::Sure::no));
    bool at_once = true;
    std::thread([&] {
        scene.captures.list_thread();
        at_once = enter_at_once();
        scene.captures.thread_ends();
    }).join();
    CHECK_FALSE(at_once);
    other.leave();
    begins.join();
    CHECK_FALSE(was_inside);
    scene.captures.failed(kOne);
    scene.captures.ended(kOne, scene.captures.moment());
    CHECK(Asking(scene.captures, Asking::Sure::no));
}

TEST_CASE("a thread that can be cancelled at any time goes by the lock for that long, with one record") {
    OwnerLock::prepare();
    CaptureScene scene;
    const bool listed_first = GENERATE(false, true);
    std::thread([&] {
        if (listed_first)
            CHECK(scene.captures.list_thread() == OwnerLock::asymmetric());
        CaptureAskers::choose_asynchronous(true);
        CHECK_FALSE(enter_at_once());
        CHECK(CaptureAskers::is_listed() == (listed_first || !OwnerLock::asymmetric()));
        {
            const Asking asking(scene.captures, Asking::Sure::no);
            CHECK(asking);
        }
        CaptureAskers::choose_asynchronous(false);
        scene.captures.list_thread();
        CaptureTracker::Inside* const inside = enter_at_once();
        CHECK((inside != nullptr) == OwnerLock::asymmetric());
        if (inside)
            CaptureTracker::leave_at_once(inside);
        CaptureAskers::choose_asynchronous(true);
        scene.captures.thread_ends();
        CHECK(CaptureAskers::is_listed() == !OwnerLock::asymmetric());
    }).join();
}

TEST_CASE("a capture waits for a thread for so long, and once") {
    const Way way = GENERATE(Way::lock, Way::store);
    OwnerLock::prepare();
    CaptureScene scene;
    InDriver other(scene, way);
    scene.captures.set_patience(1);
    scene.begin(kOne);
    scene.end(kOne);
    scene.captures.set_patience(kNoEnd);
    scene.begin(kOne);
    scene.end(kOne);
    CHECK_FALSE(other.left);
}

TEST_CASE("a capture doesn't wait for its own thread, for one that has left by a longjmp, or for one that has ended") {
    OwnerLock::prepare();
    CaptureScene scene;
    scene.captures.set_patience(kNoEnd);
    SECTION("its own, by the lock") {
        const Asking asking(scene.captures, Asking::Sure::no);
        scene.begin(kOne);
    }
    SECTION("its own, by a store") {
        scene.captures.list_thread();
        CaptureTracker::Inside* const inside = enter_at_once();
        scene.begin(kOne);
        if (inside)
            CaptureTracker::leave_at_once(inside);
    }
    SECTION("one that has left") {
        std::thread([&] {
            static std::jmp_buf back;
            scene.captures.list_thread();
            if (setjmp(back) == 0) {
                const Asking asking(scene.captures, Asking::Sure::no);
                enter_at_once();
                std::longjmp(back, 1);
            }
            scene.captures.forget_own();
        }).join();
        scene.begin(kOne);
    }
    SECTION("one that has ended") {
        std::thread([&] {
            scene.captures.list_thread();
            enter_at_once();
            scene.captures.thread_ends();
        }).join();
        scene.begin(kOne);
    }
    scene.end(kOne);
    scene.captures.thread_ends();
    CHECK(scene.captures.none_known());
}

TEST_CASE("in a forked child a capture waits for none of the parent's threads") {
    const Way way = GENERATE(Way::lock, Way::store);
    OwnerLock::prepare();
    CaptureScene scene;
    scene.captures.set_patience(kNoEnd);
    InDriver other(scene, way);
    const pid_t child = fork();
    if (child == 0) {
        scene.captures.forget_all();
        scene.captures.may_begin(kOne, By::known);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("a thread gets in without memory to note it in, and no capture waits for it") {
    CaptureScene scene;
    scene.captures.set_patience(kNoEnd);
    const NoMemory none;
    const Asking asking(scene.captures, Asking::Sure::no);
    CHECK(asking);
    scene.captures.list_thread();
    CHECK_FALSE(enter_at_once());
}

TEST_CASE("no thread is in the driver while a stream is captured, however fast captures begin and end") {
    OwnerLock::prepare();
    CaptureScene scene;
    scene.captures.set_patience(kNoEnd);
    std::atomic<bool> over{false};
    std::atomic<unsigned> inside{0}, met{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; t++)
        threads.emplace_back([&, t] {
            MadeUpDriver::stack() = {scene.own};
            if (t != 0)
                scene.captures.list_thread();
            while (!over) {
                if (CaptureTracker::Inside* const at_once = enter_at_once()) {
                    inside++;
                    inside--;
                    CaptureTracker::leave_at_once(at_once);
                } else if (const Asking asking(scene.captures, Asking::Sure::no); asking) {
                    inside++;
                    inside--;
                }
            }
            scene.captures.thread_ends();
        });
    for (int i = 0; i < 2000; i++) {
        scene.captures.may_begin(kOne, By::known);
        met += inside;
        scene.captures.began(kOne);
        met += inside;
        scene.end(kOne);
    }
    over = true;
    for (std::thread& thread : threads)
        thread.join();
    CHECK(met == 0);
    CHECK(scene.captures.none_known());
}
