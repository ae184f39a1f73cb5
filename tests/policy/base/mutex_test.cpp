// SPDX-License-Identifier: Apache-2.0
#include "policy/base/mutex.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "policy/allocator/owner_lock.h"
#include "policy/base/event_count.h"
#include "tests/catch.h"
#include "tests/policy/rounds.h"
#include "tests/skip.h"

namespace cuslice {
namespace {

TEST_CASE("what a mutex guards is changed by one thread at a time, and no waiter is forgotten") {
    Mutex mutex{LockRank::segment_heap};
    long guarded = 0;
    tests::on_threads(8, [&](unsigned) {
        for (int i = 0; i < 50'000; ++i) {
            LockGuard lock(mutex);
            // A plain read and write: an increment is lost if two threads are here at once.
            const long seen = guarded;
            if (i % 64 == 0)
                std::this_thread::yield();
            guarded = seen + 1;
        }
    });
    CHECK(guarded == 8 * 50'000);
}

TEST_CASE("a host's errno is kept, also when a lock has to be waited for") {
    Mutex mutex{LockRank::segment_heap};
    std::atomic<int> changed{0};
    tests::on_threads(4, [&](unsigned) {
        for (int i = 0; i < 2000; ++i) {
            errno = 4711;
            mutex.lock();
            if (i % 16 == 0)
                std::this_thread::yield();
            errno = 4711;
            mutex.unlock();
            if (errno != 4711)
                changed++;
        }
    });
    CHECK(changed == 0);
}

namespace {
std::atomic<unsigned> told{0};
LongWait long_wait;
}  // namespace

TEST_CASE("a lock that is waited for for long is told of once, with who has it") {
    Mutex mutex{LockRank::segment_heap};
    told = 0;
    watch_long_waits(
        [](const LongWait& wait) {
            long_wait = wait;
            told++;
        },
        5);
    mutex.lock();
    std::thread waiter([&] {
        errno = 4711;
        LockGuard lock(mutex);
        CHECK(errno == 4711);
    });
    while (!told)
        std::this_thread::yield();
    CHECK(long_wait.mutex == &mutex);
    CHECK(long_wait.holder == reinterpret_cast<uintptr_t>(pthread_self()));
    CHECK(long_wait.waiting_at != nullptr);
    CHECK(long_wait.milliseconds == 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    mutex.unlock();
    waiter.join();
    CHECK(told == 1);
    // One that is free is had as before, and so is one that others want.
    CHECK(mutex.try_lock());
    CHECK_FALSE(mutex.try_lock());
    mutex.unlock();
    watch_long_waits(nullptr, 0);
}

TEST_CASE("a fork takes the locks that are held for moments, and gives them back") {
    LockList list;
    Mutex early{LockRank::caches}, late{LockRank::table}, own{LockRank::segment_heap}, driver{LockRank::lifetimes};
    for (Mutex* mutex : {&late, &early, &driver, &own})
        list.enlist(*mutex);
    own.lock();
    std::thread([&] { CHECK(driver.try_lock()); }).join();  // and ends with it
    list.take();
    std::thread([&] {
        for (Mutex* mutex : {&early, &late, &own, &driver})
            CHECK_FALSE(mutex->try_lock());
    }).join();
    list.give_back();
    std::thread([&] {
        for (Mutex* mutex : {&early, &late}) {
            CHECK(mutex->try_lock());
            mutex->unlock();
        }
        for (Mutex* mutex : {&own, &driver})
            CHECK_FALSE(mutex->try_lock());
    }).join();
    // In a child, whose one thread has what it had.
    list.free_others();
    std::thread([&] {
        CHECK(driver.try_lock());
        CHECK_FALSE(own.try_lock());
    }).join();
    list.leave();
    std::thread([&] { CHECK(own.try_lock()); }).join();
}

TEST_CASE("no lock is had for the first time while a thread forks") {
    for (int round = 0; round < 40; round++) {
        LockList list;
        Mutex known{LockRank::process};
        list.enlist(known);
        Mutex fresh[3] = {Mutex{LockRank::table}, Mutex{LockRank::caches}, Mutex{LockRank::block_attributes}};
        std::atomic<int> begun{0}, enlisted{0};
        std::vector<std::thread> threads;
        for (Mutex& mutex : fresh)
            threads.emplace_back([&] {
                begun++;
                list.enlist(mutex);
                mutex.lock();  // waits for the fork, if that has taken it
                enlisted++;
                mutex.unlock();
            });
        while (begun < round % 4)
            std::this_thread::yield();
        list.take();
        const int there = enlisted;
        // The list holds every lock that has been enlisted by now, and lets no other be taken.
        for (int looks = 0; looks < 5; looks++)
            std::this_thread::yield();
        CHECK(enlisted == there);
        list.give_back();
        for (std::thread& thread : threads)
            thread.join();
        CHECK(enlisted == 3);
    }
}

// Takes both locks in a child, the second within the first. Returns the child's message if it aborts, else its wait
// status as a number.
std::string order_of(Mutex& first, Mutex& second) {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        const LockGuard outer(first), inner(second);
        _exit(0);
    }
    close(pipe_ends[1]);
    std::string said(200, '\0');
    const ssize_t length = read(pipe_ends[0], said.data(), said.size());
    close(pipe_ends[0]);
    said.resize(length > 0 ? static_cast<size_t>(length) : 0);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? said : std::to_string(status);
}

TEST_CASE("a thread that takes locks in a wrong order ends the program, in builds for tests") {
    Mutex early{LockRank::caches}, late{LockRank::table}, other_late{LockRank::table};
    Mutex stripes[2] = {Mutex{LockRank::stripe}, Mutex{LockRank::stripe}};
    CHECK(order_of(early, late) == "0");
    CHECK(order_of(stripes[0], stripes[1]) == "0");
    if (!LockOrder::kChecked) {
        tests::skip("this build doesn't look at the order of locks");
        return;
    }
    const auto wrong = [](LockRank before, LockRank next) {
        return "cuslice: a lock of rank " + std::to_string(static_cast<int>(next)) +
               " is taken by a thread that has one of rank " + std::to_string(static_cast<int>(before)) + "\n";
    };
    CHECK(order_of(late, early) == wrong(LockRank::table, LockRank::caches));
    CHECK(order_of(late, other_late) == wrong(LockRank::table, LockRank::table));
    CHECK(order_of(stripes[1], stripes[0]) == wrong(LockRank::stripe, LockRank::stripe));
}

TEST_CASE("who waits for something to happen is woken by it, and does not miss what happened meanwhile") {
    EventCount events;
    const uint32_t before = events.now();
    events.happened();
    events.wait(before);  // it has happened
    std::atomic<unsigned> turn{0};
    std::atomic<bool> kept{true};
    const auto take_turns = [&](unsigned first) {
        errno = 4711;
        for (unsigned mine = first; mine < 5000; mine += 2) {
            for (uint32_t seen = events.now(); turn != mine; seen = events.now())
                events.wait(seen);
            turn++;
            events.happened();
        }
        if (errno != 4711)
            kept = false;
    };
    std::thread other([&] { take_turns(1); });
    take_turns(0);
    other.join();
    CHECK(turn == 5000);
    CHECK(kept);
}

TEST_CASE("many owners' locks are revoked with one barrier") {
    OwnerLock::prepare();
    std::vector<OwnerLock> locks(20);
    for (OwnerLock& lock : locks) {
        REQUIRE(lock.enter());
        lock.leave();
    }
    const uint64_t before = OwnerLock::barriers();
    OwnerLock::Barrier barrier;
    for (OwnerLock& lock : locks)
        barrier.demand(lock);
    barrier.run();
    CHECK(OwnerLock::barriers() - before <= 1);
    for (OwnerLock& lock : locks) {
        CHECK(lock.had());
        CHECK_FALSE(lock.enter());
        lock.restore();
        CHECK(lock.enter());
        lock.leave();
    }
}

TEST_CASE("a lock whose owner is in it is not had, and is its owner's again") {
    OwnerLock::prepare();
    OwnerLock lock;
    REQUIRE(lock.enter());
    CHECK_FALSE(lock.revoke());
    lock.leave();
    CHECK(lock.enter());
    lock.leave();
    CHECK(lock.revoke());
    lock.restore();
}

}  // namespace
}  // namespace cuslice
