// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/lease/simulation/mix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include "tests/policy/lease/simulation/program.h"

namespace cuslice::tests {

namespace {

// A bucket of each program's: its weight's part of the time flows in, and what its kernels take flows out.
class TokenBucket : public Allowance {
  public:
    TokenBucket(Machine& machine, double part) : machine_(machine), part_(part), since_(machine.now()) {}
    bool may_submit() override {
        fill();
        return tokens_ > 0;
    }
    void took(uint64_t nanoseconds) override {
        fill();
        tokens_ -= static_cast<double>(nanoseconds);
    }

  private:
    static constexpr double kMost = 100e6;  // nanoseconds

    void fill() {
        tokens_ = std::min(kMost, tokens_ + part_ * static_cast<double>(machine_.now() - since_));
        since_ = machine_.now();
    }

    Machine& machine_;
    const double part_;
    uint64_t since_;
    double tokens_ = 0;
};

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

class Run {
  public:
    explicit Run(const Mix& mix) : mix_(mix), machine_(terms_of(mix)), begin_(machine_.now()), delays_(mix.seed) {
        delays_.gap = mix.gap;
        delays_.depth = mix.depth;
        delays_.depth_error = mix.depth_error;
        const auto switch_cost = [this] { return mix_.sharing == Sharing::lease ? 0 : delays_.hand_over(); };
        for (unsigned gpu = 0; gpu < mix.gpus; gpu++)
            engines_.emplace_back(machine_, gpu, switch_cost);
        for (const Participant& participant : mix.participants)
            add(participant);
        for (const auto& program : programs_)
            program->start();
        if (mix.sharing == Sharing::token_bucket)
            retry();
        machine_.run_until(begin_ + nanoseconds(1000 * mix.seconds));
    }

    Figures figures(unsigned gpu) const {
        Figures figures;
        figures.worst_10_s = worst_error(gpu, 10);
        figures.worst_1_s = worst_error(gpu, 1);
        const std::vector<double> took = took_in(gpu, 0, static_cast<size_t>(mix_.seconds));
        const double all = sum_of(took);
        figures.busy = 100 * all / (1e9 * mix_.seconds);
        for (const double one : took)
            figures.shares.push_back(100 * one / all);
        for (const auto& program : programs_)
            figures.longest_wait = std::max(figures.longest_wait, static_cast<double>(program->longest_wait()) / 1e6);
        return figures;
    }

  private:
    static lease::Terms terms_of(const Mix& mix) { return {.quantum = nanoseconds(mix.quantum)}; }

    void add(const Participant& participant) {
        const auto index = static_cast<uint32_t>(programs_.size());
        Program::Plan plan;
        plan.job = index + 1;
        plan.gpus = participant.gpus;
        plan.weight = participant.weight;
        plan.cap = participant.cap;
        plan.demand = participant.demand;
        plan.seed = mix_.seed * 7 + index;
        plan.shares = mix_.sharing == Sharing::lease;
        if (mix_.sharing == Sharing::token_bucket) {
            buckets_.push_back(std::make_unique<TokenBucket>(machine_, expected(index)));
            plan.allowance = buckets_.back().get();
        }
        programs_.push_back(std::make_unique<Program>(machine_, engines_, delays_, plan));
    }

    // A launch that found no tokens is tried again, as there is nobody to wake its thread.
    void retry() {
        for (const auto& program : programs_)
            program->retry();
        machine_.at(machine_.now() + kMs, [this] { retry(); });
    }

    double expected(size_t index) const {
        double all = 0;
        for (const Participant& participant : mix_.participants)
            all += participant.weight;
        return mix_.participants[index].weight / all;
    }

    std::vector<double> took_in(unsigned gpu, size_t from, size_t count) const {
        std::vector<double> took;
        for (const auto& program : programs_) {
            double sum = 0;
            for (size_t second = from; second < from + count; second++) {
                const size_t at = begin_ / kSecond + second;
                const auto& seconds = program->by_second(gpu);
                sum += at < seconds.size() ? static_cast<double>(seconds[at]) : 0;
            }
            took.push_back(sum);
        }
        return took;
    }

    // The first window and the last one are left out: programs start there, and turns are cut off.
    double worst_error(unsigned gpu, size_t seconds) const {
        double worst = 0;
        const size_t windows = static_cast<size_t>(mix_.seconds) / seconds;
        for (size_t window = 1; window + 1 < windows; window++) {
            const std::vector<double> took = took_in(gpu, window * seconds, seconds);
            const double all = sum_of(took);
            for (size_t i = 0; i < took.size() && all > 0; i++)
                worst = std::max(worst, 100 * std::abs(took[i] / all - expected(i)));
        }
        return worst;
    }

    const Mix& mix_;
    Machine machine_;
    const uint64_t begin_;
    Delays delays_;
    std::vector<Engine> engines_;
    std::vector<std::unique_ptr<TokenBucket>> buckets_;
    std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace

Figures simulate(const Mix& mix, unsigned gpu) { return Run(mix).figures(gpu); }

Figures simulate_seeds(Mix mix, unsigned gpu) {
    Figures worst;
    worst.busy = 100;
    for (const uint32_t seed : {1, 2, 3}) {
        mix.seed = seed;
        const Figures figures = simulate(mix, gpu);
        worst.worst_10_s = std::max(worst.worst_10_s, figures.worst_10_s);
        worst.worst_1_s = std::max(worst.worst_1_s, figures.worst_1_s);
        worst.busy = std::min(worst.busy, figures.busy);
        worst.longest_wait = std::max(worst.longest_wait, figures.longest_wait);
        worst.shares = figures.shares;
    }
    return worst;
}

std::vector<Participant> never_idle(const std::vector<uint32_t>& weights, const std::vector<std::string>& kernels) {
    std::vector<Participant> participants;
    for (size_t i = 0; i < weights.size(); i++)
        participants.push_back({.weight = weights[i], .demand = {.kernels = kernels[i]}});
    return participants;
}

}  // namespace cuslice::tests
