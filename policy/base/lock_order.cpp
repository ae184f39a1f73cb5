#include "policy/base/lock_order.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cuslice {

namespace {

struct Held {
    const Mutex* mutex;
    LockRank rank;
    std::uintptr_t frame;  // a place on the stack that it was taken on
};
constexpr unsigned kMax = 16;  // what is held beyond these is not looked at
constinit thread_local Held held[kMax] = {};
constinit thread_local unsigned count = 0;

// A signal handler on a stack of its own may call the driver whatever the thread was doing, and so may a fiber.
constexpr std::uintptr_t kOneStack = 16 << 20;
bool on_one_stack(std::uintptr_t a, std::uintptr_t b) { return (a > b ? a - b : b - a) < kOneStack; }

bool may_follow(const Held& before, const Held& next) {
    if (before.rank != next.rank) return before.rank < next.rank;
    return next.rank == LockRank::stripe && before.mutex < next.mutex;
}

[[noreturn]] void refuse(const Held& before, const Held& next) {
    char text[128];
    const int length =
        std::snprintf(text, sizeof text, "cuslice: a lock of rank %u is taken by a thread that has one of rank %u\n",
                      static_cast<unsigned>(next.rank), static_cast<unsigned>(before.rank));
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) _exit(134);
    std::abort();
}

[[gnu::noinline]] void note(const Mutex* mutex, LockRank rank, bool waits) {
    const Held next{mutex, rank, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))};
    // What it has already it has left by a longjmp, and everything that it had then.
    for (unsigned i = 0; i < count; i++)
        if (held[i].mutex == mutex) count = 0;
    for (unsigned i = 0; waits && i < count; i++)
        if (!may_follow(held[i], next) && on_one_stack(held[i].frame, next.frame)) refuse(held[i], next);
    if (count < kMax) held[count++] = next;
}

}  // namespace

void LockOrder::taking(const Mutex* mutex, LockRank rank) { note(mutex, rank, true); }

void LockOrder::took(const Mutex* mutex, LockRank rank) { note(mutex, rank, false); }

void LockOrder::gave_back(const Mutex* mutex) {
    for (unsigned i = count; i-- > 0;) {
        if (held[i].mutex != mutex) continue;
        for (count--; i < count; i++) held[i] = held[i + 1];
        return;
    }
}

void LockOrder::left() { count = 0; }

}  // namespace cuslice
