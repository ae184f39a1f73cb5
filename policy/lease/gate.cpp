// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/gate.h"

#include "policy/lease/members.h"

namespace cuslice::lease {

namespace {

constexpr unsigned kGateBits = 4;
constexpr uint64_t kBits = kOpen | kWanted | kCompany | kLender;
// A job whose pause is longer than so many quanta isn't awaited: others needn't keep their queues short for it.
constexpr uint64_t kLongPause = 10;

uint64_t number_of(uint64_t gate) { return gate >> kGateBits; }

template <typename Is>
bool any_other(const State& state, const Job& job, Is is) {
    const uint32_t gpus = gpus_of(job);
    return any_job(state, [&](const Job& other) { return &other != &job && (gpus_of(other) & gpus) && is(other); });
}

bool has_company(const State& state, const Job& job) {
    return any_other(state, job, [](const Job&) { return true; });
}

bool has_lender(const State& state, const Job& job, uint64_t now) {
    const uint64_t longest = kLongPause * state.terms.quantum;
    return any_other(state, job, [&](const Job& other) {
        return other.lent && (other.phase == Phase::waiting || elapsed(other.since, now) < longest);
    });
}

uint64_t bits_of(const State& state, const Member& member, uint64_t now) {
    if (!is_holder(state, member))
        return 0;
    const Job& job = state.jobs[member.job];
    const uint64_t wanted = job.contested ? kWanted : 0;
    const uint64_t open = job.phase == Phase::holding ? kOpen : 0;
    const uint64_t lender = has_lender(state, job, now) ? kLender : 0;
    return open | wanted | lender | (has_company(state, job) ? kCompany : 0);
}

void set_gate(Member& member, uint64_t bits) {
    const uint64_t shown = member.gate & kBits;
    if (shown != bits)
        member.gate = (number_of(member.gate) + 1) << kGateBits | bits;
}

}  // namespace

void set_gates(State& state, uint64_t now) {
    for (Member& member : state.members)
        set_gate(member, bits_of(state, member, now));
}

bool show_gate(Gate& gate, uint64_t next) {
    uint64_t shown = gate.word.load();
    while (number_of(shown) < number_of(next))
        if (gate.word.compare_exchange_weak(shown, next))
            return true;
    return false;
}

}  // namespace cuslice::lease
