// SPDX-License-Identifier: Apache-2.0
// A machine whose clock is a list of events: everything happens at the time that it says, the same in each run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "policy/lease/lease.h"

namespace cuslice::tests {

constexpr uint64_t kMs = lease::kMillisecond;
constexpr uint64_t kSecond = 1000 * kMs;
constexpr uint64_t kForEver = ~0ull;

class Machine : public lease::Surroundings {
  public:
    using Action = std::function<void()>;

    explicit Machine(const lease::Terms& terms);

    /// Does this at that time, after what was to be done then already.
    void at(uint64_t time, Action action);
    void run_until(uint64_t time);

    lease::File& file() { return *file_; }
    /// A new process's identity.
    lease::Member new_process();
    void set_condition(uint64_t presence, lease::Condition condition) { conditions_[presence] = condition; }
    /// Called when somebody wakes those who sleep at the gate.
    void on_wake(const lease::Gate& gate, Action action) { sleepers_[&gate] = std::move(action); }

    uint64_t now() override { return now_; }
    void sleep(const lease::Gate& gate, uint64_t shown, uint64_t until) override;
    void wake(lease::Gate& gate) override;
    lease::Condition condition_of(const lease::Member& member) override;
    bool has_ended(uint64_t presence) override { return conditions_[presence] == lease::Condition::ended; }
    void forget(uint64_t) override {}

  private:
    struct Event {
        uint64_t time, number;
        Action action;
    };
    struct Later {
        bool operator()(const Event& a, const Event& b) const {
            return a.time != b.time ? a.time > b.time : a.number > b.number;
        }
    };

    std::unique_ptr<lease::File> file_ = std::make_unique<lease::File>();
    std::priority_queue<Event, std::vector<Event>, Later> events_;
    std::map<uint64_t, lease::Condition> conditions_;
    std::map<const lease::Gate*, Action> sleepers_;
    uint64_t now_ = kSecond, count_ = 0, processes_ = 0;
};

}  // namespace cuslice::tests
