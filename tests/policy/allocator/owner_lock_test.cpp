#include "policy/allocator/owner_lock.h"

#include <thread>

#include "tests/catch.h"

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
    for (OwnerLock& lock : locks) barrier.demand(lock);
    barrier.run();
    for (OwnerLock& lock : locks) CHECK(lock.had() == (&lock != &locks[1]));
    for (OwnerLock& lock : locks) lock.restore();
    CHECK(locks[0].enter());
    locks[0].leave();
}

}  // namespace
}  // namespace cuslice
