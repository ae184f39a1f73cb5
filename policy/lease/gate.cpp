// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/gate.h"

#include "policy/lease/members.h"

namespace cuslice::lease {

namespace {

constexpr unsigned kGateBits = 3;

uint64_t number_of(uint64_t gate) { return gate >> kGateBits; }

bool has_company(const State& state, const Job& job) {
    const uint32_t gpus = gpus_of(job);
    return any_job(state, [&](const Job& other) { return &other != &job && (gpus_of(other) & gpus); });
}

uint64_t bits_of(const State& state, const Member& member) {
    if (!is_holder(state, member))
        return 0;
    const Job& job = state.jobs[member.job];
    const uint64_t wanted = job.contested ? kWanted : 0;
    const uint64_t open = job.phase == Phase::holding ? kOpen : 0;
    return open | wanted | (has_company(state, job) ? kCompany : 0);
}

void set_gate(Member& member, uint64_t bits) {
    const uint64_t shown = member.gate & (kOpen | kWanted | kCompany);
    if (shown != bits)
        member.gate = (number_of(member.gate) + 1) << kGateBits | bits;
}

}  // namespace

void set_gates(State& state) {
    for (Member& member : state.members)
        set_gate(member, bits_of(state, member));
}

bool show_gate(Gate& gate, uint64_t next) {
    uint64_t shown = gate.word.load();
    while (number_of(shown) < number_of(next))
        if (gate.word.compare_exchange_weak(shown, next))
            return true;
    return false;
}

}  // namespace cuslice::lease
