// SPDX-License-Identifier: Apache-2.0
// Hooks that were left by a longjmp out of a signal handler.
#include <unistd.h>

#include <cerrno>

#include "shim/driver/recorded.h"
#include "shim/entry.h"

namespace cuslice {

constinit thread_local HookFrame hook_frame;
constinit thread_local OnStack RecordedCall::outermost;

namespace {

// No call lies as deep as this below another one in the same stack, and other stacks are mostly further away.
constexpr uintptr_t kOneStack = 16 << 20;

bool is_mapped(const volatile void* place) {
    const int saved_errno = errno;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* begin = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(place) / page * page);
    unsigned char there = 0;
    const bool mapped = mincore(begin, page, &there) == 0;
    errno = saved_errno;
    return mapped;
}

// The hook's operation is left unfinished: its bytes stay charged, as nobody knows what the driver has done.
// Everything else is as if the hook had ended.
void forget_left_hook() {
    HookFrame& frame = hook_frame;
    frame.stack.forget();
    if (frame.reserving)
        frame.reserving->commit();
    if (frame.freeing)
        gpu_state().frees.end();
    frame.reserving = nullptr;
    frame.freeing = false;
    process().leave();
}

}  // namespace

// The stack grows down: what is called in there lies below its place, and what lies above has given that back. Where
// the hook was left another function's frame may lie there by now, and AddressSanitizer would have the read for a
// mistake.
[[gnu::no_sanitize("address")]] OnStack::Judgement OnStack::judge(const volatile void* here) const {
    const auto place = reinterpret_cast<uintptr_t>(place_), now = reinterpret_cast<uintptr_t>(here);
    if (now >= place)
        return now - place < kOneStack ? Judgement::left : Judgement::unknown;
    if (place - now >= kOneStack)
        return Judgement::unknown;
    const bool there = is_mapped(place_) && is_mapped(returns_at_) && *place_ == number_ && *returns_at_ == returns_to_;
    return there ? Judgement::inside : Judgement::left;
}

[[gnu::noinline]] bool still_inside(const volatile void* here) {
    const OnStack::Judgement judgement = hook_frame.stack.judge(here);
    if (judgement == OnStack::Judgement::left)
        forget_left_hook();
    // In doubt it is the program's, and counts.
    return judgement == OnStack::Judgement::inside;
}

}  // namespace cuslice
