// SPDX-License-Identifier: Apache-2.0
// A thread that is asked to end: never inside of what holds its cancellation back, and always at its end.
#include "shim/cancellation.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <vector>

#include "tests/catch.h"
#include "tests/refused_calls.h"
#include "tests/skip.h"

namespace cuslice {
namespace {

// The sanitizer for threads has locks of its own, which stay with a thread that is struck while it has one: whoever
// starts next waits for ever.
#if defined(__SANITIZE_THREAD__)
constexpr bool kMayEndAnywhere = false;
#else
constexpr bool kMayEndAnywhere = true;
#endif

// A place where a deferred cancellation strikes.
void pause() {
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
}

// A thread, and how far it has come. Nothing that it runs has a destructor.
struct Victim {
    std::function<void(Victim&)> body;
    std::atomic<bool> ready{false}, asked{false}, left{false}, went_on{false};
    std::atomic<int> inside{0};

    // Without a place where a cancellation strikes.
    void await_asked() const {
        while (!asked)
            sched_yield();
    }
    void hold_and_pause(const std::function<void()>& within = pause) {
        HeldCancellation hold;
        hold.begin();
        inside++;
        within();
        inside--;
        hold.end();
        left = true;
    }
};

void* run(void* argument) {
    auto& victim = *static_cast<Victim*>(argument);
    victim.body(victim);
    pthread_testcancel();
    victim.went_on = true;
    return nullptr;
}

pthread_t start(Victim& victim) {
    pthread_t thread{};
    REQUIRE(pthread_create(&thread, nullptr, run, &victim) == 0);
    return thread;
}

void* ask_and_join(pthread_t thread, Victim& victim) {
    while (!victim.ready)
        sched_yield();
    CHECK(pthread_cancel(thread) == 0);
    victim.asked = true;
    void* result = nullptr;
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

void check_ended_behind(std::function<void(Victim&)> body) {
    Victim victim{std::move(body)};
    const pthread_t thread = start(victim);
    CHECK(ask_and_join(thread, victim) == PTHREAD_CANCELED);
    CHECK(victim.inside == 0);
    CHECK(victim.left);
    CHECK_FALSE(victim.went_on);
}

const auto asked_inside = [](Victim& victim) {
    victim.hold_and_pause([&] {
        victim.ready = true;
        victim.await_asked();
        pause();
    });
};

}  // namespace

TEST_CASE("a thread that is asked to end while its cancellation is held back ends behind it") {
    SECTION("in its first hook") { check_ended_behind(asked_inside); }
    SECTION("in a later one") {
        check_ended_behind([](Victim& victim) {
            victim.hold_and_pause();
            victim.left = false;
            asked_inside(victim);
        });
    }
    SECTION("in the inner one of two") {
        check_ended_behind([](Victim& victim) {
            HeldCancellation outer;
            outer.begin();
            asked_inside(victim);
            victim.left = false;
            victim.inside++;
            pause();
            victim.inside--;
            victim.left = true;
            outer.end();
        });
    }
}

TEST_CASE("a thread that was asked to end before is not ended in a hook that it begins then") {
    const bool had_one = GENERATE(false, true);
    check_ended_behind([=](Victim& victim) {
        if (had_one)
            victim.hold_and_pause();
        victim.left = false;
        victim.ready = true;
        victim.await_asked();
        victim.hold_and_pause();
    });
}

TEST_CASE("a thread that may not be cancelled goes on, in hooks and behind them, until it may be") {
    std::atomic<bool> survived{false};
    check_ended_behind([&](Victim& victim) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        asked_inside(victim);
        pause();
        victim.hold_and_pause();
        pthread_testcancel();
        survived = true;
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    });
    CHECK(survived);
}

TEST_CASE("a thread that ended in a hook leaves nothing to the next one of its name") {
    for (int i = 0; i < 20; i++) {
        Victim dead{[](Victim& victim) {
            HeldCancellation hold;
            hold.begin();
            victim.ready = true;
            victim.await_asked();
            pthread_exit(nullptr);
        }};
        ask_and_join(start(dead), dead);
        // Not asked to end, and asked as another one was.
        Victim free{[](Victim& victim) { victim.hold_and_pause(); }};
        void* result = nullptr;
        REQUIRE(pthread_join(start(free), &result) == 0);
        CHECK(free.went_on);
        check_ended_behind(asked_inside);
        // In no hook at all.
        Victim outside{[](Victim& victim) {
            victim.ready = true;
            for (;;)
                pause();
        }};
        CHECK(ask_and_join(start(outside), outside) == PTHREAD_CANCELED);
    }
}

TEST_CASE("a thread that can be cancelled at any time is seen, and held back by its type") {
    REQUIRE(asynchronous_threads == Asynchronous::not_known);
    watch_cancellation_types();
    // A sanitizer has its own.
    const bool watched = dlsym(RTLD_DEFAULT, "pthread_setcanceltype") == reinterpret_cast<void*>(pthread_setcanceltype);
    CHECK(asynchronous_threads == (watched ? Asynchronous::none : Asynchronous::not_known));
    int before = -1, inside = -1, behind = -1;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    CHECK(asynchronous_threads == (watched ? Asynchronous::none : Asynchronous::not_known));
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr) == 0);
    {
        const DeferCancellation held;
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &inside);
    }
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &behind);
    CHECK(before == PTHREAD_CANCEL_DEFERRED);
    CHECK(inside == PTHREAD_CANCEL_DEFERRED);
    CHECK(behind == PTHREAD_CANCEL_ASYNCHRONOUS);
    CHECK(asynchronous_threads == (watched ? Asynchronous::seen : Asynchronous::not_known));
    // For good, as others may have chosen it too.
    watch_cancellation_types();
    CHECK(asynchronous_threads != Asynchronous::none);
}

TEST_CASE("each of many threads ends alone") {
    constexpr size_t kThreads = 200;
    std::vector<Victim> victims(kThreads);
    std::vector<pthread_t> threads;
    for (Victim& victim : victims) {
        victim.body = asked_inside;
        threads.push_back(start(victim));
    }
    for (size_t i = 0; i < kThreads; i++) {
        CHECK(ask_and_join(threads[i], victims[i]) == PTHREAD_CANCELED);
        CHECK(victims[i].inside == 0);
        CHECK(victims[i].left);
    }
}

TEST_CASE("whenever a thread is asked, it never ends inside") {
    const bool anywhere = kMayEndAnywhere && GENERATE(false, true);
    const int type = anywhere ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
    // By code that finds the C library's own, a thread that can be cancelled at any time is held back too.
    const bool past_us = anywhere && GENERATE(false, true);
    const auto cancel =
        past_us ? reinterpret_cast<decltype(&pthread_cancel)>(dlsym(RTLD_NEXT, "pthread_cancel")) : pthread_cancel;
    watch_cancellation_types();
    for (int i = 0; i < 500; i++) {
        Victim victim{[=](Victim& self) {
            pthread_setcanceltype(type, nullptr);
            for (;;) {
                HeldCancellation hold;
                hold.begin();
                self.inside.store(1, std::memory_order_relaxed);
                self.ready.store(true, std::memory_order_relaxed);
                pthread_testcancel();
                self.inside.store(0, std::memory_order_relaxed);
                hold.end();
                pthread_testcancel();
            }
        }};
        const pthread_t thread = start(victim);
        while (!victim.ready)
            sched_yield();
        for (volatile int spin = i % 97; spin > 0;)
            spin = spin - 1;
        CHECK(cancel(thread) == 0);
        CHECK(pthread_join(thread, nullptr) == 0);
        CHECK(victim.inside == 0);
    }
}

// Last: from here on the process can signal no thread, which an asynchronous cancellation takes.
TEST_CASE("a thread of which a sandbox doesn't tell whether it lives is not ended in a hook") {
    const bool refused = tests::refuse_call(SYS_tgkill, EPERM);
    if (!refused)
        return tests::skip("this kernel refuses no calls");
    check_ended_behind(asked_inside);
}

}  // namespace cuslice
