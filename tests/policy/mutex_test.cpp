#include "policy/mutex.h"

#include <cerrno>

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

}  // namespace
}  // namespace cuslice
