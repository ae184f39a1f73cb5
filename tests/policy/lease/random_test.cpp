// SPDX-License-Identifier: Apache-2.0
// Six jobs on two GPUs, on a clock of the test's own: processes start, end, are killed, stopped and continued, and
// shares change, at random.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/lease/simulation/program.h"
#include "tests/policy/lease/six_jobs.h"
#include "tests/policy/rounds.h"

using namespace cuslice::tests;
namespace lease = cuslice::lease;

namespace {

constexpr unsigned kJobs = SixJobs::kJobs, kGpus = SixJobs::kGpus;
// Steps come in bursts, so that there are windows in which nothing happens to anybody.
constexpr int kBurst = 20;
constexpr uint64_t kStepEvery = 100 * kMs;
constexpr unsigned kWindow = 5;  // seconds
constexpr double kPoints = 4;
// A turn, a quantum until a stopped holder is passed by, and a look in the queue's second place.
constexpr uint64_t kMostIdle = 300 * kMs;
// After a change, debts of those that were passed by are paid.
constexpr uint64_t kSettled = 3 * kSecond;
// Longest kernels of this test, and what is queued behind one when a gate closes.
constexpr unsigned kMostProcesses = 3;  // of a job, each with a queue of its own
constexpr uint64_t kLongestQueue = kMostProcesses * 15 * kMs;

class World {
  public:
    explicit World(unsigned seed) : random_(seed), machine_({}), delays_(seed) {
        for (unsigned gpu = 0; gpu < kGpus; gpu++)
            engines_.emplace_back(machine_, gpu, [] { return uint64_t{0}; });
        jobs_.longest_queue = kLongestQueue;
        for (unsigned job = 0; job < kJobs; job++)
            jobs_.weight[job] = 10 + 10 * (random_() % 4);
    }

    void run(int steps) {
        watch();
        for (int i = 0; i < steps; i++) {
            step();
            faults_.push_back(machine_.now());
            machine_.run_until(machine_.now() + kStepEvery);
            if (i % kBurst == kBurst - 1)
                look_at_window();
        }
    }

    const SixJobs& jobs() const { return jobs_; }

    uint64_t worst_wait_over = 0, worst_idle = 0;
    double worst_points = 0, least_busy = 1;
    int windows = 0;

  private:
    static constexpr uint64_t kWatchEvery = 5 * kMs;

    std::vector<Program*> living(unsigned job, bool running) {
        std::vector<Program*> found;
        for (const auto& program : programs_)
            if (program->lives() && program->plan().job == job + 1 && (!running || !stopped_[program.get()]))
                found.push_back(program.get());
        return found;
    }

    void step() {
        const unsigned job = random_() % kJobs;
        std::vector<Program*> all = living(job, false);
        if (all.empty())
            return start(job);
        Program& one = *all[random_() % all.size()];
        switch (random_() % 8) {
            case 0:
                return one.kill();
            case 1:
            case 2:
                return stop_or_go_on(one);
            case 3:
                if (all.size() < kMostProcesses)
                    start(job);
                return;
            default:
                return;
        }
    }

    void start(unsigned job) {
        Program::Plan plan;
        plan.job = job + 1;
        plan.gpus = SixJobs::gpus_of(job);
        plan.weight = jobs_.weight[job];
        plan.demand.kernels = random_() % 2 ? "5ms" : "ms";
        plan.seed = random_();
        programs_.push_back(std::make_unique<Program>(machine_, engines_, delays_, plan));
        programs_.back()->start();
    }

    void stop_or_go_on(Program& program) {
        bool& stopped = stopped_[&program];
        stopped ? program.go_on() : program.stop();
        stopped = !stopped;
    }

    // Every few milliseconds: who has work, who holds, and who has waited for how long.
    void watch() {
        if (!programs_.empty() && programs_.front()->lease().read(state_.get()))
            look_at_state();
        machine_.at(machine_.now() + kWatchEvery, [this] { watch(); });
    }

    void look_at_state() {
        for (unsigned job = 0; job < kJobs; job++) {
            const auto* const found = std::find_if(state_->jobs, state_->jobs + lease::kJobs,
                                                   [&](const lease::Job& one) { return one.id == job + 1; });
            if (found == state_->jobs + lease::kJobs)
                continue;
            look_at_waiting(job, *found);
            look_at_idle_holder(job, *found);
        }
    }

    struct Wait {
        uint64_t since = 0;          // as the lease says; another one: a new wait
        int64_t credit[kGpus] = {};  // when it was first seen
    };

    void look_at_waiting(unsigned job, const lease::Job& waiting) {
        if (waiting.phase != lease::Phase::waiting || living(job, true).empty())
            return;
        Wait& wait = waits_[job];
        if (wait.since != waiting.since) {
            wait.since = waiting.since;
            for (unsigned gpu = 0; gpu < kGpus; gpu++)
                wait.credit[gpu] = waiting.claims[gpu].credit;
        }
        const uint64_t waited = lease::elapsed(waiting.since, machine_.now());
        const uint64_t allowed =
            kWatchEvery + jobs_.longest_wait(job, wait.credit) + faults_in(waited + kSecond) * jobs_.held_up();
        worst_wait_over = std::max(worst_wait_over, waited > allowed ? waited - allowed : 0);
    }

    void look_at_idle_holder(unsigned job, const lease::Job& holder) {
        bool idle = lease::holds(holder) && holder.contested;
        for (Program* program : living(job, true))
            idle &= !program->has_queued() && !program->wants_gpu();
        idle_since_[job] = idle ? (idle_since_[job] ? idle_since_[job] : machine_.now()) : 0;
        if (idle)
            worst_idle = std::max(worst_idle, machine_.now() - idle_since_[job]);
    }

    // Nothing happens to anybody in it.
    void look_at_window() {
        machine_.run_until(machine_.now() + kSettled + kWindow * kSecond);
        double took[kGpus][kJobs] = {}, busy[kGpus] = {}, parts[kJobs] = {};
        bool wants[kJobs] = {};
        for (const auto& program : programs_)
            for (unsigned gpu = 0; gpu < kGpus; gpu++)
                took[gpu][program->plan().job - 1] += part_in_window(*program, gpu);
        for (unsigned job = 0; job < kJobs; job++) {
            wants[job] = !living(job, true).empty();
            for (unsigned gpu = 0; gpu < kGpus; gpu++)
                busy[gpu] += took[gpu][job];
        }
        jobs_.fair_parts(wants, busy, parts);
        for (unsigned gpu = 0; gpu < kGpus; gpu++) {
            if (busy[gpu] > 0)
                compare(gpu, took[gpu], parts);
            for (unsigned job = 0; job < kJobs; job++)
                if (wants[job] && SixJobs::gpus_of(job) == lease::bit(gpu))
                    least_busy = std::min(least_busy, busy[gpu]);
        }
    }

    double part_in_window(Program& program, unsigned gpu) {
        const uint64_t end = machine_.now() / kSecond;
        const auto& seconds = program.by_second(gpu);
        uint64_t time = 0;
        for (uint64_t second = end - kWindow; second < end && second < seconds.size(); second++)
            time += seconds[second];
        return static_cast<double>(time) / (kWindow * kSecond);
    }

    void compare(unsigned gpu, const double (&took)[kJobs], const double (&parts)[kJobs]) {
        windows++;
        for (unsigned job = 0; job < kJobs; job++)
            if (SixJobs::has(job, gpu))
                worst_points = std::max(worst_points, 100 * std::abs(took[job] - parts[job]));
    }

    uint64_t faults_in(uint64_t last) {
        const uint64_t from = machine_.now() - std::min(last, machine_.now());
        return static_cast<uint64_t>(faults_.end() - std::lower_bound(faults_.begin(), faults_.end(), from));
    }

    std::mt19937 random_;
    Machine machine_;
    Delays delays_;
    std::vector<Engine> engines_;
    std::vector<std::unique_ptr<Program>> programs_;
    std::map<Program*, bool> stopped_;
    SixJobs jobs_;
    std::vector<uint64_t> faults_;  // times of the steps
    uint64_t idle_since_[kJobs] = {};
    Wait waits_[kJobs];
    std::unique_ptr<lease::State> state_ = std::make_unique<lease::State>();
};

}  // namespace

TEST_CASE("six jobs on two GPUs have their shares, whatever becomes of their processes") {
    const char* const seed = std::getenv("CUSLICE_TEST_SEED");
    World world(seed ? static_cast<unsigned>(std::stoul(seed)) : 1);
    world.run(rounds(400, 10'000));
    CHECK(world.windows > 0);
    CHECK(world.worst_points <= kPoints);
    CHECK(world.least_busy >= world.jobs().least_busy());
    CHECK(world.worst_wait_over == 0);
    CHECK(world.worst_idle <= kMostIdle);
}
