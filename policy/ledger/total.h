// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <initializer_list>

#include "policy/base/machine.h"
#include "policy/ledger/layout.h"

// A total in memory that processes share, any of which may be killed in any instruction without a byte being lost.
//
// Before a stripe changes the total it writes down what it is about to do; the change itself replaces total and stamp
// in one instruction. Whoever replaces another's stamp first notes in that one's stripe that it was there. So of a dead
// process's last operation it can be told whether it took effect: its stamp is in the total, or somebody noted it.
namespace cuslice::ledger {

inline constexpr uint64_t kSequence = (1ull << 48) - 1;
inline constexpr uint64_t kNoLimit = ~0ull;
// In the total of an account whose file is gone and has another one in its place: more than any limit, so that whoever
// is still here is refused, finds the other file and goes on there. In the total, not in the limit, so that a
// reservation which has read the limit already is refused too.
inline constexpr uint64_t kRetired = 1ull << 62;

// Two loads, not one: what is torn makes the exchange fail, and nothing else is decided on it.
inline Stamped read(const Stamped& total) {
    Stamped seen;
    seen.stamp = __atomic_load_n(&total.stamp, __ATOMIC_ACQUIRE);
    seen.bytes = __atomic_load_n(&total.bytes, __ATOMIC_ACQUIRE);
    return seen;
}

// Written out, since tsan's runtime makes of the compiler's own a lock of one process.
inline bool exchange(Stamped& total, const Stamped& expected, const Stamped& next) {
#if defined(__x86_64__)
    bool done = false;
    uint64_t low = expected.bytes, high = expected.stamp;
    asm volatile("lock cmpxchg16b %1"
                 : "=@ccz"(done), "+m"(total), "+a"(low), "+d"(high)
                 : "b"(next.bytes), "c"(next.stamp)
                 : "memory");
    return done;
#elif defined(__aarch64__)
    // A pair of exclusive accesses, which every ARMv8 has. The barrier makes of it what the locked instruction is.
    uint64_t low, high;
    unsigned failed, done;
    asm volatile(
        "1: ldaxp %[low], %[high], %[total]\n"
        "   cmp %[low], %[expected_low]\n"
        "   ccmp %[high], %[expected_high], #0, eq\n"
        "   b.ne 2f\n"
        "   stlxp %w[failed], %[next_low], %[next_high], %[total]\n"
        "   cbnz %w[failed], 1b\n"
        "   dmb ish\n"
        "   b 3f\n"
        "2: clrex\n"
        "3: cset %w[done], eq\n"
        : [low] "=&r"(low), [high] "=&r"(high), [failed] "=&r"(failed), [done] "=&r"(done), [total] "+Q"(total)
        : [expected_low] "r"(expected.bytes), [expected_high] "r"(expected.stamp), [next_low] "r"(next.bytes),
          [next_high] "r"(next.stamp)
        : "cc", "memory");
    return done;
#endif
}

// Both halves of one moment.
inline Stamped read_whole(const Stamped& total) {
    for (Stamped seen = read(total);;) {
        const Stamped again = read(total);
        if (again.bytes == seen.bytes && again.stamp == seen.stamp)
            return seen;
        seen = again;
    }
}

// Sums of what a file says, which may be anything: they wrap.
inline int64_t plus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t minus(int64_t a) { return static_cast<int64_t>(0 - static_cast<uint64_t>(a)); }

// The stamp stays: the operation that it is of has taken effect, and is still the last one.
inline void set_retired(Stamped& total, bool retired) {
    for (;;) {
        const Stamped now = read(total);
        const uint64_t bytes = retired ? now.bytes | kRetired : now.bytes & ~kRetired;
        if (bytes == now.bytes || exchange(total, now, {bytes, now.stamp}))
            return;
    }
}
inline bool is_retired(const Stamped& total) { return __atomic_load_n(&total.bytes, __ATOMIC_RELAXED) & kRetired; }

inline void note_replaced(Stripe* stripes, uint64_t stamp) {
    if (stamp >> 48 >= uint64_t{kMembers} * kStripes)
        return;  // nobody's: the file was damaged
    std::atomic<uint64_t>& noted = stripes[stamp >> 48].replaced;
    const uint64_t sequence = stamp & kSequence;
    uint64_t known = noted.load(std::memory_order_relaxed);
    while (known < sequence && !noted.compare_exchange_weak(known, sequence))
        continue;
}

// A total that is about to fall has been this much.
inline void note_peak(std::atomic<uint64_t>& peak, uint64_t bytes) {
    uint64_t known = peak.load(std::memory_order_relaxed);
    while (known < bytes && !peak.compare_exchange_weak(known, bytes))
        continue;
}

// The most that the total has been: what was noted before it fell, or what it is. The total first: where that has
// fallen already, what it was is in the other.
inline uint64_t peak_of(const Stamped& total, const std::atomic<uint64_t>& peak) {
    const uint64_t now = __atomic_load_n(&total.bytes, __ATOMIC_ACQUIRE) & ~kRetired;
    return std::max(now, peak.load(std::memory_order_acquire));
}

// The same for people: what is charged beyond the limit was given back by a member that had not called since, and taken
// by another one (holdings.h), so that nobody held it.
inline uint64_t peak_of(const Account& account) {
    return std::min(peak_of(account.total, account.peak), account.limit.load(std::memory_order_relaxed));
}

// A change that stripe `number` has begun.
struct Change {
    uint32_t number;
    int64_t delta;
    uint64_t ceiling;
};

// True if a total of `bytes` may be changed by `delta`. With kNoLimit the change is a fact, and always fits.
inline bool fits(uint64_t bytes, int64_t delta, uint64_t ceiling) {
    return delta <= 0 || ceiling == kNoLimit || (bytes <= ceiling && static_cast<uint64_t>(delta) <= ceiling - bytes);
}

// The rest of change(), where somebody else changes the total just now, it has not been so high yet, or the change
// doesn't fit. Apart, so that the usual change needs no registers for its loops.
[[gnu::noinline]] inline bool change_slowly(Stamped& total, std::atomic<uint64_t>* peak, Stripe* stripes,
                                            const Change& what, uint64_t* seen) {
    Stripe& stripe = stripes[what.number];
    const uint64_t sequence = stripe.completed.load(std::memory_order_relaxed) + 1;
    const int64_t before = stripe.held.load(std::memory_order_relaxed);
    const uint64_t stamp = uint64_t{what.number} << 48 | sequence;
    bool done = false;
    for (unsigned pause = 64;; pause = pause < 256 ? pause * 2 : pause) {
        const Stamped now = read(total);
        if (peak && now.bytes > peak->load(std::memory_order_relaxed))
            note_peak(*peak, now.bytes & ~kRetired);
        if (!fits(now.bytes, what.delta, what.ceiling)) {
            const Stamped again = read(total);  // a torn value must not refuse
            if (again.bytes != now.bytes || again.stamp != now.stamp)
                continue;
            if (seen)
                *seen = now.bytes & ~kRetired;
            break;
        }
        if (now.stamp >> 48 != what.number)
            note_replaced(stripes, now.stamp);
        done = exchange(total, now, {now.bytes + static_cast<uint64_t>(what.delta), stamp});
        if (done)
            break;
        for (unsigned i = 0; i < pause; i++)
            spin_pause();
    }
    if (done)
        stripe.held.store(plus(before, what.delta), std::memory_order_release);
    stripe.completed.store(sequence, std::memory_order_release);
    return done;
}

// Adds `delta` to the total and to stripe `number`. A positive one is refused (false, and nothing has changed, `*seen`
// says what was there) if the total would be over `ceiling`. One thread at a time for each stripe; any number of
// stripes.
//
// What the total was is noted in `peak` before it falls: a total is at its highest before it falls, or now. So
// reserving, which is given none, pays nothing for it, and whoever is killed in between leaves either the total as it
// was, or the note. Null for what is given back as well, if it was never held.
inline bool change(Stamped& total, std::atomic<uint64_t>* peak, Stripe* stripes, uint32_t number, int64_t delta,
                   uint64_t ceiling, uint64_t* seen = nullptr) {
    Stripe& stripe = stripes[number];
    const uint64_t sequence = stripe.completed.load(std::memory_order_relaxed) + 1;
    const int64_t before = stripe.held.load(std::memory_order_relaxed);
    // Released, so that held_now() knows the last operation to be completed where it reads these.
    stripe.delta.store(delta, std::memory_order_release);
    stripe.before.store(before, std::memory_order_release);
    stripe.begun.store(sequence, std::memory_order_release);
    const Stamped now = read(total);
    if ((peak && now.bytes > peak->load(std::memory_order_relaxed)) || !fits(now.bytes, delta, ceiling)) [[unlikely]]
        return change_slowly(total, peak, stripes, {number, delta, ceiling}, seen);
    if (now.stamp >> 48 != number)
        note_replaced(stripes, now.stamp);
    // A torn read makes the exchange fail, as ever.
    const uint64_t stamp = uint64_t{number} << 48 | sequence;
    if (!exchange(total, now, {now.bytes + static_cast<uint64_t>(delta), stamp})) [[unlikely]]
        return change_slowly(total, peak, stripes, {number, delta, ceiling}, seen);
    stripe.held.store(plus(before, delta), std::memory_order_release);
    stripe.completed.store(sequence, std::memory_order_release);
    return true;
}

// Bytes of a stripe whose process may be at work in it, once the total is retired: nothing more can be reserved then,
// and memory that is just being given back may count still.
inline int64_t held_now(const Stamped& total, const Stripe& stripe, uint32_t number) {
    constexpr unsigned kTries = 1000;  // a file that was written over may say anything
    for (unsigned i = 0; i < kTries; i++) {
        const uint64_t completed = stripe.completed.load();
        const int64_t held = stripe.held.load();
        const uint64_t begun = stripe.begun.load();
        if (begun <= completed)
            return held;
        const int64_t before = stripe.before.load(), delta = stripe.delta.load();
        const bool happened = read(total).stamp == (uint64_t{number} << 48 | begun) || stripe.replaced.load() >= begun;
        if (stripe.begun.load() == begun && stripe.completed.load() < begun)
            return plus(before, happened ? delta : 0);
    }
    return stripe.held.load();
}

// Brings the stripe of a dead process to where its last operation left the total. May itself be cut short and done
// again.
inline void resolve(const Stamped& total, Stripe* stripes, uint32_t number) {
    Stripe& stripe = stripes[number];
    const uint64_t sequence = stripe.begun.load();
    if (sequence <= stripe.completed.load())
        return;
    const uint64_t stamp = uint64_t{number} << 48 | sequence;
    const bool happened = read_whole(total).stamp == stamp || stripe.replaced.load() >= sequence;
    stripe.held.store(plus(stripe.before.load(), happened ? stripe.delta.load() : 0));
    stripe.completed.store(sequence);
}

// Takes what a dead process's stripes, `count` of them from `first` on, held out of the total. May itself be cut short
// and done again. Stripes that gave back what others took come first, so that the total is never less than the living
// hold.
inline void take_back(Stamped& total, std::atomic<uint64_t>& peak, Stripe* stripes, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        resolve(total, stripes, first + i);
    for (const bool negative : {true, false})
        for (uint32_t i = 0; i < count; i++) {
            const int64_t held = stripes[first + i].held.load();
            if (held && (held < 0) == negative)
                change(total, &peak, stripes, first + i, minus(held), kNoLimit);
        }
}

}  // namespace cuslice::ledger
