// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/refusal_notices.h"

#include <algorithm>

namespace cuslice {

void RefusalNotices::Last::set(const Refused& refused, uint64_t now) {
    what = refused.what;
    bytes = refused.bytes;
    used = refused.used;
    frees = refused.frees;
    at = now;
}

bool RefusalNotices::Last::equals(const Refused& refused) const {
    return what == refused.what && bytes == refused.bytes;
}

// A smaller request than the one that was shown, while nothing has been given back.
bool RefusalNotices::probes(const Refused& refused) const {
    // Not every free is counted, as those of pools; and what was freed may be in use again.
    const bool given_back = shown_last_.frees != refused.frees || shown_last_.used > refused.used;
    return !given_back && shown_last_.what == refused.what && shown_last_.bytes > refused.bytes;
}

// One of several threads that come at the same moment has it.
bool RefusalNotices::takes_turn(uint64_t now) {
    uint64_t spent = spent_until_.load(std::memory_order_relaxed);
    if (now + (kAtOnce - 1) * kPause < spent)
        return false;
    return spent_until_.compare_exchange_strong(spent, std::max(spent, now) + kPause, std::memory_order_relaxed);
}

Notice RefusalNotices::judge(const Refused& refused, uint64_t now) {
    const bool asked_again = asked_bytes_.exchange(refused.bytes, std::memory_order_relaxed) == refused.bytes;
    const uint64_t shown = shown_last_.at;
    const bool paused = shown == 0 || now >= shown + kPause;
    const bool probe = probes(refused);
    const bool news = paused || !(probe || shown_last_.equals(refused));
    if (news && takes_turn(now)) {
        shown_last_.set(refused, now);
        return Notice::line;
    }
    return probe && !asked_again ? Notice::detail : Notice::none;
}

void RefusalNotices::hide(const Refused& refused, uint64_t now) {
    hidden_last_.set(refused, now);
    hidden_.fetch_add(1, std::memory_order_relaxed);
}

bool RefusalNotices::ended_by(uint64_t now, Refused* last) const {
    const bool recent = now < hidden_last_.at + kPause;
    if (!recent || hidden_.load(std::memory_order_relaxed) == 0)
        return false;
    *last = {hidden_last_.what, hidden_last_.bytes};
    return !shown_last_.equals(*last);
}

}  // namespace cuslice
