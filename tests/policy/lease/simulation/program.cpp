// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/lease/simulation/program.h"

#include <algorithm>

namespace cuslice::tests {

Program::Program(Machine& machine, std::vector<Engine>& engines, Delays& delays, const Plan& plan)
    : machine_(machine), engines_(engines), delays_(delays), plan_(plan), self_(machine.new_process()) {
    for (unsigned gpu = 0; gpu < engines.size(); gpu++)
        streams_.emplace_back(Kernels(plan.demand.kernels, plan.seed + gpu));
}

void Program::start() {
    if (has_lease()) {
        lease_->attach(machine_.file(), machine_, self_);
        bool joined = false;
        for (unsigned gpu = 0; gpu < engines_.size(); gpu++) {
            if (!uses(gpu))
                continue;
            const lease::Share share{gpu, plan_.weight, plan_.cap};
            joined = joined ? lease_->set_share(share) : lease_->join(plan_.job, share);
        }
        const auto state = std::make_unique<lease::State>();
        lease_->read(state.get());
        for (uint32_t i = 0; i < lease::kMembers; i++)
            if (state->members[i].presence == self_.presence)
                machine_.on_wake(machine_.file().gates[i], [this] { gate_changed(); });
    }
    for (Stream& stream : streams_)
        stream.burst = static_cast<int64_t>(nanoseconds(plan_.demand.on_gpu));
    seek();
}

void Program::kill() {
    lives_ = false;
    machine_.set_condition(self_.presence, lease::Condition::ended);
    for (unsigned gpu = 0; gpu < engines_.size(); gpu++) {
        streams_[gpu].ahead.clear();
        engines_[gpu].drop(*this);
    }
}

void Program::stop() {
    stopped_ = true;
    machine_.set_condition(self_.presence, lease::Condition::stopped);
}

void Program::go_on() {
    stopped_ = false;
    machine_.set_condition(self_.presence, lease::Condition::runs);
    asleep_ = false;  // a sleep that has gone on for too long
    gate_changed();
    seek();
}

bool Program::may_submit() const {
    if (!lives_ || stopped_ || pausing_ || starting_)
        return false;
    if (plan_.allowance)
        return plan_.allowance->may_submit();
    return !plan_.shares || (in_turn_ && lease_->held());
}

bool Program::has_demand(unsigned gpu) const {
    return uses(gpu) && (plan_.demand.never_idle() || streams_[gpu].burst > 0);
}

bool Program::wants_gpu() const {
    for (unsigned gpu = 0; gpu < engines_.size(); gpu++)
        if (has_demand(gpu))
            return lives_ && !pausing_;
    return false;
}

bool Program::has_work(unsigned gpu) const { return !streams_[gpu].ahead.empty() || (may_submit() && has_demand(gpu)); }

bool Program::has_queued() const {
    for (unsigned gpu = 0; gpu < engines_.size(); gpu++)
        if (!streams_[gpu].ahead.empty() || engines_[gpu].runs(*this))
            return true;
    return false;
}

uint64_t Program::take(unsigned gpu) {
    Stream& stream = streams_[gpu];
    if (!has_work(gpu))
        return 0;
    if (!stream.ahead.empty()) {
        const uint64_t next = stream.ahead.back();
        stream.ahead.pop_back();
        return next;
    }
    const uint64_t next = stream.kernels.next();
    stream.burst -= static_cast<int64_t>(next);
    return next;
}

void Program::ran(unsigned gpu, uint64_t from, bool to_its_end) {
    Stream& stream = streams_[gpu];
    for (uint64_t at = from; at < machine_.now();) {
        const uint64_t second = at / kSecond, end = std::min(machine_.now(), (second + 1) * kSecond);
        stream.by_second.resize(std::max<size_t>(stream.by_second.size(), second + 1));
        stream.by_second[second] += end - at;
        at = end;
    }
    stream.charged += machine_.now() - from;
    if (plan_.allowance)
        plan_.allowance->took(machine_.now() - from);
    if (!to_its_end)
        return;
    pause_if_done();
    hand_on();
}

// A program that pauses waits for its work first, as one does that reads a result.
void Program::pause_if_done() {
    if (plan_.demand.never_idle() || pausing_ || has_queued())
        return;
    if (wants_gpu())
        return;
    pausing_ = true;
    machine_.at(machine_.now() + nanoseconds(plan_.demand.on_cpu), [this] {
        pausing_ = false;
        for (Stream& stream : streams_)
            stream.burst = static_cast<int64_t>(nanoseconds(plan_.demand.on_gpu));
        seek();
    });
}

void Program::seek() {
    if (!lives_ || stopped_ || asleep_ || starting_ || !wants_gpu())
        return;
    if (!has_lease())
        return notify_engines();
    waits_since_ = machine_.now();
    try_lease();
}

void Program::try_lease() {
    if (!lives_ || stopped_ || pausing_)
        return;
    const bool slept = asleep_;
    asleep_ = false;
    lease::Answer answer;
    lease::Pause pause;
    if (!lease_->try_acquire(kForEver, &answer, &pause))
        return sleep_at_gate(pause);
    if (answer.reason != lease::Reason::none)
        passed_by.push_back(answer);
    in_turn_ = true;
    shown_ = lease_->gate();
    const uint64_t delay = slept ? delays_.hand_over() : 0;
    starting_ = slept;
    machine_.at(machine_.now() + delay, [this] {
        starting_ = false;
        longest_wait_ = std::max(longest_wait_, machine_.now() - waits_since_);
        notify_engines();
        gate_changed();
    });
}

void Program::sleep_at_gate(const lease::Pause& pause) {
    asleep_ = true;
    const uint64_t nap = ++nap_;
    machine_.at(pause.until, [this, nap] {
        if (asleep_ && nap == nap_)
            try_lease();
    });
}

void Program::notify_engines() {
    for (unsigned gpu = 0; gpu < engines_.size(); gpu++)
        if (has_work(gpu))
            engines_[gpu].notify(*this);
}

// Both of its threads see it: the one that waits for its turn, and the one that hands it on.
void Program::gate_changed() {
    if (!lives_ || stopped_ || starting_ || !has_lease())
        return;
    const uint64_t gate = lease_->gate();
    const bool closed = lease::is_open(shown_) && !lease::is_open(gate);
    shown_ = gate;
    if (asleep_ && lease::is_open(gate))
        try_lease();
    if (closed && in_turn_) {
        for (unsigned gpu = 0; gpu < engines_.size(); gpu++)
            queue_ahead(gpu);
        seek();
    }
    hand_on();
    look_later();
}

void Program::queue_ahead(unsigned gpu) {
    Stream& stream = streams_[gpu];
    if (pausing_ || !has_demand(gpu))
        return;
    for (double queued = 0; queued < delays_.queued() && has_demand(gpu);) {
        const uint64_t next = stream.kernels.next();
        stream.burst -= static_cast<int64_t>(next);
        stream.ahead.insert(stream.ahead.begin(), next);
        queued += static_cast<double>(next) / 1e6;
    }
    engines_[gpu].notify(*this);
}

// The thread that hands on goes by its gate alone: a turn may be over before a thread that waited for it has woken.
void Program::hand_on() {
    if (!has_lease() || starting_ || has_queued())
        return;
    const uint64_t gate = lease_->gate();
    const bool goes_on = lease::is_open(gate) && wants_gpu();
    if (!lease::is_wanted(gate) || goes_on)
        return;
    in_turn_ = false;
    for (unsigned gpu = 0; gpu < engines_.size(); gpu++) {
        lease_->charge(gpu, streams_[gpu].charged);
        streams_[gpu].charged = 0;
    }
    lease_->pass();
    shown_ = lease_->gate();
    if (!asleep_)
        seek();
    else if (lease::is_open(shown_))
        try_lease();
}

void Program::look_later() {
    if (!in_turn_ || !lease::is_open(lease_->gate()))
        return;
    const uint64_t look = ++looks_;
    machine_.at(lease_->look(), [this, look] {
        if (look == looks_ && lives_ && !stopped_)
            gate_changed();
    });
}

}  // namespace cuslice::tests
