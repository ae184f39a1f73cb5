// SPDX-License-Identifier: Apache-2.0
// A lease's value by itself, with a clock that the test moves.
#pragma once

#include <cstdint>
#include <memory>

#include "policy/lease/gate.h"
#include "policy/lease/schedule.h"
#include "policy/lease/steps.h"

namespace cuslice::tests {

inline constexpr uint64_t kStart = 1000 * lease::kMillisecond;
inline constexpr uint64_t kQuantum = 50 * lease::kMillisecond;

// Jobs of one member each, which has the job's number.
struct Table {
    Table() { lease::make_empty(*state, {.quantum = kQuantum}); }
    uint32_t add(uint32_t weight, uint32_t gpus = 1, uint32_t cap = lease::kWhole) {
        lease::Member self{};
        self.presence = ++processes;
        const uint32_t job = lease::place_of_job(*state, processes);
        const uint32_t member = lease::enter(*state, job, self);
        for (uint32_t gpu = 0; gpu < lease::kGpus; gpu++)
            if (gpus & lease::bit(gpu))
                lease::set_share(*state, job, gpu, weight, cap, now);
        return member;
    }
    uint32_t add_to(uint32_t job) {
        lease::Member self{};
        self.presence = ++processes;
        return lease::enter(*state, job, self);
    }
    void wants(uint32_t member) { lease::want(*state, member, now); }
    void passes(uint32_t member) { lease::pass(*state, member, now); }
    void after(uint64_t milliseconds) {
        now += milliseconds * lease::kMillisecond;
        lease::schedule(*state, now);
    }
    bool open(uint32_t member) const { return lease::is_open(state->members[member].gate); }
    bool wanted(uint32_t member) const { return lease::is_wanted(state->members[member].gate); }
    lease::Job& job(uint32_t index) { return state->jobs[index]; }
    int64_t credit_ms(uint32_t index, uint32_t gpu = 0) const {
        return state->jobs[index].claims[gpu].credit / static_cast<int64_t>(lease::kMillisecond);
    }

    std::unique_ptr<lease::State> state = std::make_unique<lease::State>();
    uint64_t now = kStart, processes = 0;
};

}  // namespace cuslice::tests
