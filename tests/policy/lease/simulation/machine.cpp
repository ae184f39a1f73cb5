// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/lease/simulation/machine.h"

#include <cstdlib>

#include "policy/lease/published.h"

namespace cuslice::tests {

Machine::Machine(const lease::Terms& terms) {
    const auto state = std::make_unique<lease::State>();
    lease::make_empty(*state, terms);
    lease::publish_first(*file_, *state);
}

void Machine::at(uint64_t time, Action action) {
    events_.push({time > now_ ? time : now_, count_++, std::move(action)});
}

void Machine::run_until(uint64_t time) {
    while (!events_.empty() && events_.top().time <= time) {
        const Event event = events_.top();
        events_.pop();
        now_ = event.time;
        event.action();
    }
    now_ = time;
}

lease::Member Machine::new_process() {
    lease::Member self{};
    self.presence = ++processes_;
    self.pid = static_cast<int32_t>(processes_);
    conditions_[self.presence] = lease::Condition::runs;
    return self;
}

// Threads here are events, which never block.
void Machine::sleep(const lease::Gate&, uint64_t, uint64_t) { std::abort(); }

void Machine::wake(lease::Gate& gate) {
    const auto found = sleepers_.find(&gate);
    if (found != sleepers_.end() && found->second)
        at(now_, found->second);
}

lease::Condition Machine::condition_of(const lease::Member& member) { return conditions_[member.presence]; }

}  // namespace cuslice::tests
