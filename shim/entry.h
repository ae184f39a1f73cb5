// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/cancellation.h"
#include "shim/process/process.h"

namespace cuslice {

// Where one of our frames lies on this thread's stack. A signal handler of the program's may leave it by siglongjmp,
// which runs no destructor. So that the thread is in there is not believed for good: a call from where the stack has
// been given back, or written over, is the program's own.
class OnStack {
  public:
    bool any() const { return place_; }
    enum class Judgement { inside, left, unknown };
    // Judges by `here`, an address in the caller's frame, whether this thread is still in there. Unknown: it is on
    // another stack now.
    Judgement judge(const volatile void* here) const;

    // The way in which cancellation is held back. Quick: for hooks that hold no lock over a call of the driver's.
    enum class Hold { quick, by_calls };
    [[gnu::always_inline]] void begin(volatile uint64_t* place, Hold hold) {
        hold == Hold::quick ? cancellation_.begin() : cancellation_.begin_by_calls();
        returns_at_ = static_cast<void* const*>(__builtin_frame_address(0)) + 1;
        returns_to_ = __builtin_return_address(0);
        *place = ++number_;
        // Opaque to GCC, which warns of a local's address that is kept: end() comes before the local's.
        asm("" : "+r"(place));
        place_ = place;
    }
    [[gnu::always_inline]] void end() {
        *const_cast<volatile uint64_t*>(place_) = 0;
        forget();
    }
    [[gnu::always_inline]] void forget() {
        place_ = nullptr;
        cancellation_.end();
    }

  private:
    const volatile uint64_t* place_ = nullptr;  // where the number is
    uint64_t number_ = 0;
    void* const* returns_at_ = nullptr;
    const void* returns_to_ = nullptr;
    HeldCancellation cancellation_;
};

// The thread's outermost hook that counts.
struct HookFrame {
    OnStack stack;
    // Operations in progress, unfinished if the hook is left.
    Budget* reserving = nullptr;
    bool freeing = false;
};
extern constinit thread_local HookFrame hook_frame;

// True if a call from `here` is inside the hook that this thread was last seen in. Forgets a hook that was left.
bool still_inside(const volatile void* here);

// Where the caller's part of the stack ends: all that is its own lies above. With GCC without a frame pointer, which
// costs a hook that needs few registers more than what it does.
[[gnu::always_inline]] inline const void* below_caller() {
#if defined(__clang__)
    return __builtin_frame_address(0);
#else
    return static_cast<const char*>(__builtin_dwarf_cfa()) - 1;
#endif
}

// True for calls that are the driver's own, or ours to the driver, and not the program's.
inline constexpr struct InsideHook {
    [[gnu::always_inline]] operator bool() const { return hook_frame.stack.any() && still_inside(below_caller()); }
} inside_hook;

// True for calls of the program's that blocks of a cache may be in.
[[gnu::always_inline]] inline bool meets_caches() { return process().caches_anything() && !inside_hook; }

// True for those that captures and ends of streams are followed by.
[[gnu::always_inline]] inline bool meets_watched_work() { return process().watches_work() && !inside_hook; }

// The map of all caches' blocks.
inline ContextAllocator::Map& address_map() { return process().caches().map(); }

// Stands at the beginning of every hook that counts. While it lives, this thread's further calls are the driver's own
// (or our own questions to it) and pass through uncounted, and the thread can't be cancelled between a charge and the
// driver's answer.
class HookEntry {
  public:
    [[gnu::always_inline]] explicit HookEntry(OnStack::Hold hold = OnStack::Hold::by_calls) {
        if (hook_frame.stack.any()) [[unlikely]] {
            if (still_inside(&place_))
                return;
            if ((nested_ = hook_frame.stack.any()))
                outer_ = hook_frame;
        }
        if (!(counts_ = process().limits_anything()))
            return;
        hook_frame.stack.begin(&place_, hold);
    }
    [[gnu::always_inline]] ~HookEntry() {
        if (!counts_)
            return;
        hook_frame.stack.end();
        if (nested_) [[unlikely]]
            hook_frame = outer_;
    }
    HookEntry(const HookEntry&) = delete;
    HookEntry& operator=(const HookEntry&) = delete;

    // False if there is nothing to count here: hand the call to the driver as it is.
    bool counts() const { return counts_; }

  private:
    volatile uint64_t place_ = 0;
    bool counts_ = false, nested_ = false;
    union {
        HookFrame outer_;  // of a hook on another stack, if nested: whether that has been left can't be told
    };
};

// Loads configuration and driver before the first hooked call; afterwards one load and a branch. What stands in the way
// is said once, on stderr. Returns what is the case.
inline Readiness ready() {
    extern Readiness load_and_report();
    const Readiness known = process().readiness();
    return known == Readiness::ready ? known : load_and_report();
}

}  // namespace cuslice
