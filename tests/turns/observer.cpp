// SPDX-License-Identifier: Apache-2.0
#include "tests/turns/observer.h"

#include <algorithm>
#include <cstring>

#include "policy/base/kernel_clock.h"
#include "policy/lease/job_id.h"
#include "policy/lease/published.h"
#include "policy/lease/steps.h"

namespace cuslice::tests {

namespace {

// Between two looks, and until a thread runs that was woken on a machine that is busy with something else.
constexpr uint64_t kHost = 100 * kMillisecond;
constexpr uint64_t kSecond = 1000 * kMillisecond;

uint64_t now_monotonic() { return kernel_clock(CLOCK_MONOTONIC); }

bool any_runs(const Players& players, unsigned job) {
    return std::any_of(players.begin(), players.end(),
                       [&](const auto& player) { return player->job() == job && !player->is_stopped(); });
}

}  // namespace

Observer::Observer(std::string leases, std::string books, Words uuids)
    : books_(std::move(books)), uuids_(std::move(uuids)), leases_(std::move(leases)) {}

Observer::~Observer() {
    lease::close_lease(&open_);
    folder_.leave(false);
}

bool Observer::read() {
    if (!open_.file &&
        !(folder_.enter(leases_.c_str(), nullptr) && lease::open_lease_to_read(folder_.where(), &open_, nullptr)))
        return false;
    uint64_t seen = 0;
    return lease::read_current(*open_.file, state_.get(), &seen) && lease::is_whole(*state_);
}

const lease::Job* Observer::find(unsigned job) const {
    const uint64_t id = lease::job_id(name_of(job));
    const lease::Job* const end = state_->jobs + lease::kJobs;
    const lease::Job* const found =
        std::find_if<const lease::Job*>(state_->jobs, end, [&](const lease::Job& one) { return one.id == id; });
    return found == end ? nullptr : found;
}

unsigned Observer::lease_number(unsigned gpu) const { return lease::find_gpu(*state_, uuids_[gpu].c_str()); }

void Observer::note_fault() { faults_.push_back(now_monotonic()); }

uint64_t Observer::faults_in(uint64_t last, uint64_t now) const {
    return static_cast<uint64_t>(faults_.end() - std::lower_bound(faults_.begin(), faults_.end(), now - last));
}

Observer::Had Observer::had(const Players& players) {
    Had all;
    account_.refresh(books_);
    for (const auto& player : players)
        for (unsigned gpu = 0; gpu < kGpus; gpu++)
            if (const auto busy = account_.total(uuids_[gpu], player->pid()))
                all.of[gpu][player->job()] += (*busy)[static_cast<size_t>(fake::Engine::compute)];
    return all;
}

void Observer::look(const Players& players, const SixJobs& jobs) {
    if (!read())
        return;
    looks++;
    const uint64_t now = now_monotonic();
    const Had had = this->had(players);
    for (unsigned number = 0; number < kJobs; number++) {
        const lease::Job* const job = find(number);
        if (job && any_runs(players, number))
            look_at_waiting(number, *job, jobs, now);
        if (job)
            look_at_holder(number, *job, had.of[0][number] + had.of[1][number], now);
    }
}

void Observer::look_at_waiting(unsigned number, const lease::Job& job, const SixJobs& jobs, uint64_t now) {
    if (job.phase != lease::Phase::waiting)
        return;
    waits++;
    Wait& wait = waits_[number];
    if (wait.since != job.since) {
        wait.since = job.since;
        wait.late = late_;
        for (unsigned gpu = 0; gpu < kGpus; gpu++)
            wait.credit[gpu] = lease_number(gpu) < lease::kGpus ? job.claims[lease_number(gpu)].credit : 0;
    }
    const uint64_t waited = lease::elapsed(job.since, now);
    const uint64_t host = kHost + late_ - wait.late;
    const uint64_t allowed =
        host + jobs.longest_wait(number, wait.credit) + faults_in(waited + kSecond, now) * jobs.held_up();
    worst_wait_over = std::max(worst_wait_over, waited > allowed ? waited - allowed : 0);
    worst_wait_part = std::max(worst_wait_part, static_cast<double>(waited) / static_cast<double>(allowed));
}

void Observer::look_at_holder(unsigned number, const lease::Job& job, uint64_t busy, uint64_t now) {
    const bool holds_idle = lease::holds(job) && job.contested && busy == busy_[number];
    busy_[number] = busy;
    if (!holds_idle) {
        idle_since_[number] = 0;
        return;
    }
    if (!idle_since_[number])
        idle_since_[number] = now;
    worst_idle = std::max(worst_idle, now - idle_since_[number]);
}

}  // namespace cuslice::tests
