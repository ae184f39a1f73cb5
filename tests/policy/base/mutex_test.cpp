#include "policy/base/mutex.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "policy/allocator/owner_lock.h"
#include "policy/base/event_count.h"
#include "tests/catch.h"
#include "tests/policy/rounds.h"

namespace cuslice {
namespace {

TEST_CASE("what a mutex guards is changed by one thread at a time, and no waiter is forgotten") {
    Mutex mutex;
    long guarded = 0;
    tests::on_threads(8, [&](unsigned) {
        for (int i = 0; i < 50'000; ++i) {
            LockGuard lock(mutex);
            // A plain read and write: an increment is lost if two threads are here at once.
            const long seen = guarded;
            if (i % 64 == 0) std::this_thread::yield();
            guarded = seen + 1;
        }
    });
    CHECK(guarded == 8 * 50'000);
}

TEST_CASE("a host's errno is kept, also when a lock has to be waited for") {
    Mutex mutex;
    std::atomic<int> changed{0};
    tests::on_threads(4, [&](unsigned) {
        for (int i = 0; i < 2000; ++i) {
            errno = 4711;
            mutex.lock();
            if (i % 16 == 0) std::this_thread::yield();
            errno = 4711;
            mutex.unlock();
            if (errno != 4711) changed++;
        }
    });
    CHECK(changed == 0);
}

namespace {
std::atomic<unsigned> told{0};
LongWait long_wait;
}  // namespace

TEST_CASE("a lock that is waited for for long is told of once, with who has it") {
    Mutex mutex;
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
    while (!told) std::this_thread::yield();
    CHECK(long_wait.mutex == &mutex);
    CHECK(long_wait.holder == reinterpret_cast<std::uintptr_t>(pthread_self()));
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

TEST_CASE("who waits for something to happen is woken by it, and does not miss what happened meanwhile") {
    EventCount events;
    const std::uint32_t before = events.now();
    events.happened();
    events.wait(before);  // it has happened
    std::atomic<unsigned> turn{0};
    const auto take_turns = [&](unsigned first) {
        errno = 4711;
        for (unsigned mine = first; mine < 5000; mine += 2) {
            for (std::uint32_t seen = events.now(); turn != mine; seen = events.now()) events.wait(seen);
            turn++;
            events.happened();
        }
        CHECK(errno == 4711);
    };
    std::thread other([&] { take_turns(1); });
    take_turns(0);
    other.join();
    CHECK(turn == 5000);
}

TEST_CASE("many owners' locks are revoked with one barrier") {
    OwnerLock::prepare();
    std::vector<OwnerLock> locks(20);
    for (OwnerLock& lock : locks) {
        REQUIRE(lock.enter());
        lock.leave();
    }
    const std::uint64_t before = OwnerLock::barriers();
    OwnerLock::Barrier barrier;
    for (OwnerLock& lock : locks) barrier.demand(lock);
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
