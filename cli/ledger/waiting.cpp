// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/waiting.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/text/report.h"
#include "config/resolve.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::cli {
namespace {

// Between two looks at the ledger, and between two questions to the driver, which take longer. Nobody is woken: what
// is waited for is the end of other users' processes too, and a look costs less than a millisecond.
constexpr uint64_t kPoll = 100, kQuery = 2000;  // milliseconds

constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds

uint64_t now() { return kernel_clock(CLOCK_MONOTONIC); }

}  // namespace

Waiting::Waiting(const Settings& settings, Machine& machine, std::string command)
    : machine_(machine), command_(std::move(command)), start_(now()), asked_driver_(start_) {
    if (const Entry* wait = find(settings, Key::wait))
        most_ = wait->number;
}

void Waiting::begin(const Reservations& refused) {
    since_ = now();
    for (const auto& one : refused) {
        one->queue_up(command_);
        one->look();
        warn("waiting for " + one->wish());
    }
}

// Looks are counted, and not the time: on a machine where each takes long, what is waited for does too.
bool Waiting::settle(const Reservations& refused) {
    const auto may_fit = [](const auto& one) { return one->may_fit_soon(); };
    if (settled_ >= ledger::kSettles || std::none_of(refused.begin(), refused.end(), may_fit))
        return false;
    settled_ += kPoll;
    std::this_thread::sleep_for(std::chrono::milliseconds(kPoll));
    refresh(refused);
    for (const auto& one : refused)
        one->look();
    return true;
}

bool Waiting::go_on(const Reservations& refused) {
    if (most_ == 0)
        return settle(refused);
    // Also where the time is over by now: that it was waited for is said the same on a busy machine.
    if (since_ == 0)
        begin(refused);
    const uint64_t spent = (now() - start_) / kMillisecond;
    if (most_ != kForEver && spent >= most_)
        return false;
    const uint64_t left = most_ == kForEver ? kPoll : most_ - spent;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(kPoll, left)));
    if (now() - asked_driver_ >= kQuery * kMillisecond)
        refresh(refused);
    for (const auto& one : refused)
        one->look();
    // On one GPU all that is left is kept for it, once it was passed too often there: not on the others as well.
    const auto keeps = [this](const auto& one) { return one.get() == kept_ && one->keeps(); };
    if (std::none_of(refused.begin(), refused.end(), keeps)) {
        const auto found = std::find_if(refused.begin(), refused.end(), [](const auto& one) { return one->keeps(); });
        kept_ = found != refused.end() ? found->get() : nullptr;
    }
    for (const auto& one : refused)
        one->step_aside(kept_ != nullptr && one.get() != kept_);
    return true;
}

// Asks the driver again: only it can tell what others hold outside cuslice.
void Waiting::refresh(const Reservations& refused) {
    std::vector<Gpu> gpus;
    for (const auto& one : refused)
        gpus.push_back(one->gpu());
    machine_.refresh(gpus);
    for (size_t i = 0; i < gpus.size(); ++i)
        refused[i]->set_free(gpus[i].free);
    asked_driver_ = now();
}

void Waiting::ended(const Reservation& taken) {
    if (since_ == 0)
        return;
    const uint64_t seconds = (now() - since_) / (1000 * kMillisecond);
    warn(taken.name() + " granted after " + std::string(ledger::format_age(seconds)));
    since_ = 0;
    kept_ = nullptr;
}

std::string Waiting::last_word(const Reservation& one) const {
    if (since_ == 0)
        return one.refusal();
    const uint64_t seconds = (now() - since_) / (1000 * kMillisecond);
    return "gave up waiting after " + std::string(ledger::format_age(seconds)) + ", " + one.place_in_queue() + ". " +
           one.refusal();
}

}  // namespace cuslice::cli
