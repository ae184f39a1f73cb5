// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/lease/simulation/engine.h"

#include <algorithm>

namespace cuslice::tests {

Engine::Engine(Machine& machine, unsigned number, std::function<uint64_t()> switch_cost)
    : machine_(machine), number_(number), switch_cost_(std::move(switch_cost)) {}

void Engine::notify(Submitter& submitter) {
    const auto is_its = [&](const Place& place) { return place.submitter == &submitter; };
    if (std::none_of(places_.begin(), places_.end(), is_its))
        places_.push_back({&submitter, 0});
    if (!running_)
        start();
    else if (others_have_work())
        stop_at(std::max(machine_.now(), from_ + slice_left_));
}

bool Engine::runs(const Submitter& submitter) const {
    for (size_t i = 0; i < places_.size(); i++)
        if (places_[i].submitter == &submitter)
            return places_[i].left != 0 || (running_ && last_ == i);
    return false;
}

void Engine::drop(Submitter& submitter) {
    for (size_t i = 0; i < places_.size(); i++) {
        if (places_[i].submitter != &submitter)
            continue;
        places_[i].left = 0;
        if (!running_ || last_ != i)
            return;
        running_ = false;
        run_++;
        start();
        return;
    }
}

bool Engine::others_have_work() const {
    for (size_t i = 0; i < places_.size(); i++)
        if (i != last_ && (places_[i].left || places_[i].submitter->has_work(number_)))
            return true;
    return false;
}

bool Engine::has_kernel(Place& place) {
    if (!place.left)
        place.left = place.submitter->take(number_);
    return place.left != 0;
}

// The process whose slice isn't over goes on; then comes the next one, and itself again where there is no other.
bool Engine::choose_place() {
    if (slice_left_ && has_kernel(places_[last_]))
        return true;
    slice_left_ = kSlice;
    for (size_t i = 1; i <= places_.size(); i++) {
        const size_t at = (last_ + i) % places_.size();
        if (!has_kernel(places_[at]))
            continue;
        last_ = at;
        return true;
    }
    return false;
}

void Engine::start() {
    if (running_ || places_.empty())
        return;
    const size_t before = last_;
    if (!choose_place())
        return;
    running_ = true;
    length_ = places_[last_].left;
    from_ = machine_.now() + (before == last_ ? 0 : switch_cost_());
    end_ = 0;
    stop_at(from_ + (others_have_work() ? std::min(length_, slice_left_) : length_));
}

void Engine::stop_at(uint64_t time) {
    const uint64_t end = std::clamp(time, from_, from_ + length_);
    if (end_ && end >= end_)
        return;
    end_ = end;
    const uint64_t run = ++run_;
    machine_.at(end, [this, run] { stopped(run); });
}

void Engine::stopped(uint64_t run) {
    if (run != run_)
        return;
    Place& place = places_[last_];
    const uint64_t time = machine_.now() - from_;
    place.left -= std::min(place.left, time);
    slice_left_ -= std::min(slice_left_, time);
    running_ = false;
    const uint64_t from = from_;
    const bool to_its_end = place.left == 0;
    place.submitter->ran(number_, from, to_its_end);
    start();
}

}  // namespace cuslice::tests
