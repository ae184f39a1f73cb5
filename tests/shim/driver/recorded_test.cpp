// SPDX-License-Identifier: Apache-2.0
// Calls that are written down: the outermost only, and not what the driver does inside one.
#include "shim/driver/recorded.h"

#include <csetjmp>
#include <string>

#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

std::jmp_buf out;

[[gnu::noinline]] void jump_out() {
    const RecordedCall recorded;
    if (recorded.records())
        std::longjmp(out, 1);
}

/// A call from within what the caller does, as the driver's own are.
[[gnu::noinline]] bool would_record() {
    const RecordedCall recorded;
    return recorded.records();
}

int cancel_state() {
    int state = -1, ignored = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, &ignored);
    return state;
}

}  // namespace

TEST_CASE("a call is recorded, and the calls inside it are not the program's") {
    const Within within(kCached);
    if (!within)
        return;
    {
        const RecordedCall outer;
        CHECK(outer.records());
        CHECK(cancel_state() == PTHREAD_CANCEL_DISABLE);
        CHECK_FALSE(would_record());
        CHECK_FALSE(would_record());
    }
    CHECK(cancel_state() == PTHREAD_CANCEL_ENABLE);
    const RecordedCall next;
    CHECK(next.records());
}

TEST_CASE("nothing inside a hook that counts is recorded") {
    const Within within(kCached);
    if (!within)
        return;
    {
        const HookEntry entry;
        CHECK_FALSE(would_record());
    }
    CHECK(would_record());
}

TEST_CASE("after a call that was left by a longjmp the next one is recorded") {
    const Within within(kCached);
    if (!within)
        return;
    if (setjmp(out) == 0) {
        jump_out();
        FAIL("it wasn't left");
    }
    {
        const RecordedCall next;
        CHECK(next.records());
    }
    CHECK(cancel_state() == PTHREAD_CANCEL_ENABLE);
}

TEST_CASE("a stream has one number, and each kind of default stream its own") {
    const auto stream = reinterpret_cast<CUstream>(0x4711);
    CHECK(number_of(stream, false) == 0x4711);
    CHECK(number_of(stream, true) == 0x4711);
    CHECK(number_of(nullptr, false) == 0);
    CHECK(number_of(nullptr, true) == reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD));
}

TEST_CASE("once the recording has ended nothing is recorded") {
    const Within within(kCached);
    if (!within)
        return;
    process().stop_recording();
    CHECK_FALSE(would_record());
    CHECK(process().caches_anything());
}
