// SPDX-License-Identifier: Apache-2.0
#include "policy/base/lock_order.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

struct Held {
    const Mutex* mutex;
    LockRank rank;
    uintptr_t frame;  // a place on the stack that it was taken on
};
constexpr unsigned kMax = 16;  // what is held beyond these is not looked at
constinit thread_local Held held[kMax] = {};
constinit thread_local unsigned count = 0;

// A signal handler on a stack of its own may call the driver whatever the thread was doing, and so may a fiber.
constexpr uintptr_t kOneStack = 16 << 20;
bool on_one_stack(uintptr_t a, uintptr_t b) { return (a > b ? a - b : b - a) < kOneStack; }

bool may_follow(const Held& before, const Held& next) {
    if (before.rank != next.rank)
        return before.rank < next.rank;
    return next.rank == LockRank::stripe && before.mutex < next.mutex;
}

constinit std::atomic<bool (*)()> held_back{nullptr};

[[noreturn]] void refuse(const char* text, int length) {
    if (write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0)
        _exit(134);
    std::abort();
}

[[noreturn]] void refuse(const Held& before, const Held& next) {
    char text[128];
    refuse(text,
           std::snprintf(text, sizeof text, "cuslice: a lock of rank %u is taken by a thread that has one of rank %u\n",
                         static_cast<unsigned>(next.rank), static_cast<unsigned>(before.rank)));
}

bool is_held_back() {
    const auto waits = held_back.load(std::memory_order_relaxed);
    return waits && waits();
}

bool is_disabled() {
    int state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, nullptr);
    return state == PTHREAD_CANCEL_DISABLE;
}

// A deferred cancellation strikes in such a call.
void refuse_if_cancellable_in_calls(LockRank rank) {
    const bool watched = held_back.load(std::memory_order_relaxed);
    if (!watched || !is_held_over_calls(rank) || is_disabled() || is_held_back())
        return;
    char text[128];
    refuse(text, std::snprintf(text, sizeof text,
                               "cuslice: a lock of rank %u is taken by a thread that can be cancelled in a call\n",
                               static_cast<unsigned>(rank)));
}

// A thread that is ended in the midst of what the lock guards would leave it behind.
void refuse_if_cancellable(LockRank rank) {
    if (asynchronous_threads.load(std::memory_order_relaxed) != Asynchronous::seen)
        return;
    int type = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (type == PTHREAD_CANCEL_DEFERRED)
        return;
    pthread_setcanceltype(type, nullptr);
    if (is_held_back())
        return;
    char text[128];
    refuse(text, std::snprintf(text, sizeof text,
                               "cuslice: a lock of rank %u is taken by a thread that can be cancelled at any time\n",
                               static_cast<unsigned>(rank)));
}

[[gnu::noinline]] void note(const Mutex* mutex, LockRank rank, bool waits) {
    const Held next{mutex, rank, reinterpret_cast<uintptr_t>(__builtin_frame_address(0))};
    // If this thread has the lock already, it has left it by a longjmp, and with it every lock that it had then.
    for (unsigned i = 0; i < count; i++)
        if (held[i].mutex == mutex)
            count = 0;
    for (unsigned i = 0; waits && i < count; i++)
        if (!may_follow(held[i], next) && on_one_stack(held[i].frame, next.frame))
            refuse(held[i], next);
    if (count < kMax)
        held[count++] = next;
    refuse_if_cancellable_in_calls(rank);
    refuse_if_cancellable(rank);
}

}  // namespace

void LockOrder::taking(const Mutex* mutex, LockRank rank) { note(mutex, rank, true); }

void LockOrder::took(const Mutex* mutex, LockRank rank) { note(mutex, rank, false); }

void LockOrder::gave_back(const Mutex* mutex) {
    for (unsigned i = count; i-- > 0;) {
        if (held[i].mutex != mutex)
            continue;
        for (count--; i < count; i++)
            held[i] = held[i + 1];
        return;
    }
}

void LockOrder::left() { count = 0; }

void LockOrder::watch_cancellation(bool (*waits)()) { held_back.store(waits, std::memory_order_relaxed); }

}  // namespace cuslice
