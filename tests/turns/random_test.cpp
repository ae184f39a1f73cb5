// SPDX-License-Identifier: Apache-2.0
// Six jobs on two fake GPUs, in processes with the library preloaded: at random they start, end, are killed, stopped
// and continued, fork, launch graphs, wait for each other's events, pause, and have their shares changed. The same is
// tried on a simulated clock in tests/policy/lease/random_test.cpp; here the clock is real, and so are the hooks.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>
#include <thread>

#include "tests/catch.h"
#include "tests/policy/rounds.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/soon.h"
#include "tests/turns/observer.h"

namespace cuslice::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned kJobs = SixJobs::kJobs, kGpus = SixJobs::kGpus;
constexpr milliseconds kStepEvery{100}, kLookEvery{10};
// Steps come in bursts, between which nothing happens to anybody: by then debts of those passed by are paid.
constexpr int kBurst = 40;
constexpr seconds kSettled{3}, kWindow{5};
constexpr double kPoints = 4;
// Where this test gets no core for longer, its programs don't either, and leave the GPU idle in their turns.
constexpr milliseconds kLate{10};
constexpr unsigned kMostProcesses = 3;  // of a job, each with a queue of its own
constexpr uint64_t kPause = 100 * kMillisecond;
// Two batches of a process, and what a turn lets it queue behind them.
constexpr uint64_t kLongestQueue = kMostProcesses * 30 * kMillisecond;
// A turn, a quantum until a stopped holder is passed by, a look in the queue's second place, and the machine's own.
constexpr uint64_t kMostIdle = 400 * kMillisecond;

class World {
  public:
    explicit World(unsigned seed) : random_(seed), observer_(leases(), machine_.books.path(), machine_.uuids) {
        jobs_.longest_queue = kLongestQueue;
        for (unsigned& weight : jobs_.weight)
            weight = any_weight();
    }

    void run(int steps, bool with_windows) {
        for (int i = 1; i <= steps; i++) {
            step();
            look_for(kStepEvery);
            reap();
            if (with_windows && i % kBurst == 0)
                look_at_window();
        }
    }

    void end() {
        for (const auto& player : players_)
            player->end();
        CHECK(soon([&] {
            reap();
            return players_.empty();
        }));
    }

    const Observer& observed() const { return observer_; }
    double worst_points = 0;
    std::string worst_window;  // what each job had and was to have, in percent
    int windows = 0, unsteady_windows = 0, started = 0, set = 0, strange_ends = 0;

  private:
    std::string leases() const { return machine_.books.path() + "/leases"; }
    unsigned any_weight() { return 10 + 10 * (random_() % 4); }

    std::vector<RunningPlayer*> living(unsigned job, bool running) const {
        std::vector<RunningPlayer*> found;
        for (const auto& player : players_)
            if (player->job() == job && !player->is_ending() && !(running && player->is_stopped()))
                found.push_back(player.get());
        return found;
    }

    void step() {
        const unsigned job = random_() % kJobs;
        const std::vector<RunningPlayer*> all = living(job, false);
        const unsigned drawn = random_() % 12;
        if (all.empty() || (drawn == 0 && all.size() < kMostProcesses))
            return start(job);
        RunningPlayer& one = *all[random_() % all.size()];
        drawn < 6 ? hold_up(one, drawn) : tell(one, drawn);
    }

    void hold_up(RunningPlayer& one, unsigned drawn) {
        observer_.note_fault();
        if (drawn == 1)
            one.kill();
        else if (drawn == 2)
            one.end();
        else if (drawn == 3)
            set_share(one.job());
        else
            one.stop_or_go_on();
    }

    void tell(const RunningPlayer& one, unsigned drawn) {
        const std::string event = " event" + std::to_string(random_() % 3);
        const std::string lines[] = {"graph",        "kept",
                                     "fork",         "export" + event,
                                     "wait" + event, "pause " + std::to_string(kPause / kMillisecond)};
        one.tell(lines[drawn - 6]);
    }

    void start(unsigned job) {
        observer_.note_fault();
        const std::string kernel = random_() % 2 ? "five" : "one", batch = kernel == "five" ? "2" : "10";
        const Words words{CUSLICE_TEST_PLAYER, std::to_string(SixJobs::gpus_of(job)), kernel, batch,
                          machine_.books.path()};
        const Words settings{"CUSLICE_DIR=" + leases(), "CUSLICE_JOB=" + Observer::name_of(job),
                             "CUSLICE_SHARE=" + std::to_string(jobs_.weight[job]) + "%",
                             "CUSLICE_FAKE_COST=one=1ms,five=5ms"};
        players_.push_back(std::make_unique<RunningPlayer>(
            job, words, sliced(machine_.fake, machine_.books.path(), settings), machine_.books.path() + "/said"));
        started++;
    }

    // Refused before the job has launched anything.
    void set_share(unsigned job) {
        const unsigned weight = any_weight();
        const Words words{kLaunch, "set", "--job", Observer::name_of(job), "--share", std::to_string(weight) + "%"};
        if (cuslice::tests::run(words, machine_.outside({"CUSLICE_DIR=" + leases()})).exit_code != 0)
            return;
        jobs_.weight[job] = weight;
        set++;
    }

    // Returns by how much the latest look was late.
    std::chrono::nanoseconds look_for(milliseconds time) {
        using Clock = std::chrono::steady_clock;
        std::chrono::nanoseconds late{0};
        for (const auto end = Clock::now() + time; Clock::now() < end;) {
            observer_.look(players_, jobs_);
            const auto next = Clock::now() + kLookEvery;
            std::this_thread::sleep_until(next);
            const std::chrono::nanoseconds by = Clock::now() - next;
            observer_.note_late(static_cast<uint64_t>(by.count()));
            late = std::max(late, by);
        }
        return late;
    }

    void reap() {
        std::erase_if(players_, [&](const auto& player) {
            const bool ended = player->has_ended();
            strange_ends += player->ended_strangely();
            return ended;
        });
    }

    // Nothing happens to anybody in it.
    void look_at_window() {
        look_for(kSettled);
        reap();
        const Observer::Had before = observer_.had(players_);
        const auto begin = std::chrono::steady_clock::now();
        const bool is_steady = look_for(kWindow) <= kLate;
        const Observer::Had after = observer_.had(players_);
        const std::chrono::duration<double, std::nano> length = std::chrono::steady_clock::now() - begin;
        double took[kGpus][kJobs] = {}, busy[kGpus] = {}, parts[kJobs] = {};
        bool wants[kJobs] = {};
        for (unsigned job = 0; job < kJobs; job++) {
            wants[job] = !living(job, true).empty();
            for (unsigned gpu = 0; gpu < kGpus; gpu++) {
                took[gpu][job] = static_cast<double>(after.of[gpu][job] - before.of[gpu][job]) / length.count();
                busy[gpu] += took[gpu][job];
            }
        }
        jobs_.fair_parts(wants, busy, parts);
        for (unsigned gpu = 0; gpu < kGpus; gpu++)
            if (busy[gpu] > 0 && is_steady)
                compare(gpu, took[gpu], parts);
        unsteady_windows += !is_steady;
    }

    void compare(unsigned gpu, const double (&took)[kJobs], const double (&parts)[kJobs]) {
        windows++;
        double worst = 0;
        std::ostringstream text;
        text.precision(3);
        text << "GPU " << gpu << ":";
        for (unsigned job = 0; job < kJobs; job++) {
            if (!SixJobs::has(job, gpu))
                continue;
            worst = std::max(worst, 100 * std::abs(took[job] - parts[job]));
            text << "  job " << job << " of weight " << jobs_.weight[job] << " had " << 100 * took[job] << " for "
                 << 100 * parts[job];
        }
        if (worst > worst_points)
            worst_window = text.str();
        worst_points = std::max(worst_points, worst);
    }

    std::mt19937 random_;
    const Machine machine_{"2xh200"};
    SixJobs jobs_;
    Observer observer_;
    Players players_;
};

}  // namespace

TEST_CASE("six jobs in processes of their own have their turns, whatever becomes of them", "[slow]") {
    if (!kSanitizer.empty())
        return skip("with a sanitizer's runtime, processes start for longer than they run here");
    const char* const seed = std::getenv("CUSLICE_TEST_SEED");
    const bool full = std::getenv("CUSLICE_TEST_FULL") != nullptr;
    World world(seed ? static_cast<unsigned>(std::stoul(seed)) : 1);
    world.run(rounds(300, 10'000), full);
    const Observer& observed = world.observed();
    WARN(world.started << " processes, " << world.set << " shares set, " << world.windows << " windows of a GPU, "
                       << world.unsteady_windows << " without a core, " << observed.waits
                       << " looks at a job that waits, for " << observed.worst_wait_part
                       << " of what is allowed at most; points " << world.worst_points << ", idle "
                       << observed.worst_idle / kMillisecond << " ms; " << world.worst_window);
    CHECK(observed.waits > 0);
    CHECK(observed.worst_wait_over == 0);
    CHECK(observed.worst_idle <= kMostIdle);
    CHECK(world.worst_points <= kPoints);
    world.end();
    CHECK(world.strange_ends == 0);
    if (full && world.windows == 0)
        skip("the machine was busy with something else whenever shares were to be compared");
}

}  // namespace cuslice::tests
