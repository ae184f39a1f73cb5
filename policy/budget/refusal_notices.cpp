#include "policy/budget/refusal_notices.h"

namespace cuslice {

bool RefusalNotices::shows(const Refused& refused, std::uint64_t now) {
    const std::uint64_t shown = shown_at_.load(std::memory_order_relaxed);
    const bool paused = shown == 0 || now >= shown + kPause;
    const bool differs = what_.load(std::memory_order_relaxed) != refused.what ||
                         bytes_.load(std::memory_order_relaxed) != refused.bytes;
    std::uint64_t spent = spent_until_.load(std::memory_order_relaxed);
    if ((paused || differs) && now + (kAtOnce - 1) * kPause >= spent &&
        spent_until_.compare_exchange_strong(spent, (spent > now ? spent : now) + kPause, std::memory_order_relaxed)) {
        what_.store(refused.what, std::memory_order_relaxed);
        bytes_.store(refused.bytes, std::memory_order_relaxed);
        shown_at_.store(now, std::memory_order_relaxed);
        return true;
    }
    hidden_what_.store(refused.what, std::memory_order_relaxed);
    hidden_bytes_.store(refused.bytes, std::memory_order_relaxed);
    hidden_at_.store(now, std::memory_order_relaxed);
    hidden_.fetch_add(1, std::memory_order_relaxed);
    return false;
}

bool RefusalNotices::ended_by(std::uint64_t now, Refused* last) const {
    if (hidden_.load(std::memory_order_relaxed) == 0 || now >= hidden_at_.load(std::memory_order_relaxed) + kPause)
        return false;
    *last = {hidden_what_.load(std::memory_order_relaxed), hidden_bytes_.load(std::memory_order_relaxed)};
    return last->what != what_.load(std::memory_order_relaxed) || last->bytes != bytes_.load(std::memory_order_relaxed);
}

}  // namespace cuslice
