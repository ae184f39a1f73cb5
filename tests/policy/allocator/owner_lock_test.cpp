// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/owner_lock.h"

#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/catch.h"
#include "tests/refused_calls.h"
#include "tests/skip.h"

namespace cuslice {
namespace {

TEST_CASE("a lock that others have revoked is not entered until they have restored it") {
    OwnerLock::prepare();
    static OwnerLock lock;
    CHECK(lock.enter());
    lock.leave();
    REQUIRE(lock.revoke());
    CHECK_FALSE(lock.enter());
    CHECK(lock.had());  // who has not come in doesn't hold it
    lock.restore();
    CHECK(lock.enter());
    lock.leave();
}

TEST_CASE("a lock whose owner was ended in there can't be had, and its owner's successor can enter it") {
    OwnerLock::prepare();
    static OwnerLock lock;
    std::thread([] { CHECK(lock.enter()); }).join();
    CHECK_FALSE(lock.revoke());
    CHECK(lock.enter());  // not revoked for good
    lock.leave();
    CHECK(lock.revoke());
    lock.reset();
    CHECK(lock.enter());
    lock.leave();
}

TEST_CASE("of many locks that are demanded at once, each is had but the one that somebody is in") {
    OwnerLock::prepare();
    static OwnerLock locks[3];
    std::thread([] { CHECK(locks[1].enter()); }).join();
    OwnerLock::Barrier barrier;
    for (OwnerLock& lock : locks)
        barrier.demand(lock);
    barrier.run();
    for (OwnerLock& lock : locks)
        CHECK(lock.had() == (&lock != &locks[1]));
    for (OwnerLock& lock : locks)
        lock.restore();
    CHECK(locks[0].enter());
    locks[0].leave();
}

TEST_CASE("a lock keeps its owner out also once the kernel refuses barriers, and from the second time on at once") {
    OwnerLock::prepare();
    static OwnerLock lock;
    std::atomic<bool> stop{false}, inside{false}, filtered{false};
    std::atomic<int> seen{0}, had{0};
    std::thread owner([&] {
        while (!stop) {
            if (!lock.enter())
                continue;
            inside.store(true, std::memory_order_relaxed);
            inside.store(false, std::memory_order_relaxed);
            lock.leave();
        }
    });
    std::thread other([&] {
        filtered = tests::refuse_call(SYS_membarrier, EPERM);
        for (int i = 0; filtered && i < 200; i++) {
            if (!lock.revoke())
                continue;
            had++;
            for (int look = 0; look < 100; look++)
                seen += inside.load(std::memory_order_relaxed);
            lock.restore();
        }
    });
    other.join();
    stop = true;
    owner.join();
    if (!filtered)
        return tests::skip("this kernel refuses no calls");
    CHECK_FALSE(OwnerLock::asymmetric());
    CHECK(had == 200);
    CHECK(seen == 0);
    CHECK(lock.enter());
    lock.leave();
}

}  // namespace
}  // namespace cuslice
