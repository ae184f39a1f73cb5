// SPDX-License-Identifier: Apache-2.0
// Shares of a GPU's time that the lease keeps, on the simulated clock. tests/bench/share_simulation.cpp has them all.
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/lease/simulation/mix.h"

using namespace cuslice::tests;

namespace {

// Six windows of 10 s, and as many as a test has patience for.
Mix mix_of(std::vector<Participant> participants) {
    Mix mix;
    mix.participants = std::move(participants);
    mix.seconds = 60;
    return mix;
}

struct Case {
    std::vector<uint32_t> weights;
    std::vector<std::string> kernels;
};

}  // namespace

TEST_CASE("shares of programs with kernels up to 5 ms are kept, and the GPU is busy") {
    const Case one = GENERATE(values<Case>({{{30, 70}, {"ms", "ms"}},
                                            {{10, 90}, {"ms", "5ms"}},
                                            {{25, 25, 50}, {"ms", "ms", "5ms"}},
                                            {{1, 99}, {"ms", "ms"}}}));
    const Figures figures = simulate(mix_of(never_idle(one.weights, one.kernels)));
    CHECK(figures.worst_10_s <= 1);
    CHECK(figures.worst_1_s <= 4);
    CHECK(figures.busy >= 98.5);
}

TEST_CASE("shares of programs with kernels of 50 ms are kept over 10 s") {
    const Figures figures = simulate(mix_of(never_idle({30, 70}, {"50ms", "50ms"})));
    CHECK(figures.worst_10_s <= 1);
    CHECK(figures.busy >= 98.5);
}

TEST_CASE("queues that are half as long, or half as long again, change no share") {
    Mix mix = mix_of(never_idle({30, 70}, {"ms", "5ms"}));
    mix.depth_error = 0.5;
    const Figures figures = simulate(mix);
    CHECK(figures.worst_10_s <= 1);
    CHECK(figures.worst_1_s <= 4);
}

TEST_CASE("a program that is alone has all of the GPU, or its cap") {
    Mix mix = mix_of(never_idle({30}, {"ms"}));
    CHECK(simulate(mix).busy >= 99.5);
    mix.participants[0].cap = 40;
    const double busy = simulate(mix).busy;
    CHECK(busy >= 39);
    CHECK(busy <= 40.5);
}

TEST_CASE("twenty jobs have equal shares") {
    const Figures figures =
        simulate(mix_of(never_idle(std::vector<uint32_t>(20, 5), std::vector<std::string>(20, "ms"))));
    CHECK(figures.worst_10_s <= 1);
    CHECK(figures.busy >= 98.5);
}

TEST_CASE("two jobs on two GPUs have their shares of both") {
    Mix mix = mix_of(never_idle({30, 70}, {"ms", "ms"}));
    mix.gpus = 2;
    for (Participant& participant : mix.participants)
        participant.gpus = 3;
    for (const unsigned gpu : {0, 1}) {
        const Figures figures = simulate(mix, gpu);
        CHECK(figures.worst_10_s <= 1);
        CHECK(figures.busy >= 98.5);
    }
}

TEST_CASE("where programs pause the GPU is as busy as by the driver alone") {
    using Demands = std::pair<double, double>;
    const auto [on_gpu, on_cpu] = GENERATE(values<Demands>({{10, 10}, {20, 5}, {5, 15}, {2, 2}}));
    const bool both = GENERATE(true, false);
    Mix mix = mix_of(never_idle({30, 70}, {"ms", "ms"}));
    mix.participants[0].demand.on_gpu = on_gpu;
    mix.participants[0].demand.on_cpu = on_cpu;
    if (both)
        mix.participants[1].demand = mix.participants[0].demand;
    const double busy = simulate(mix).busy;
    mix.sharing = Sharing::driver;
    mix.gap = 0;  // the driver's time slices cost nothing here, so that they are no excuse
    CHECK(busy >= 0.97 * simulate(mix).busy);
}

TEST_CASE("the controls are what they are: without a share halves, by a token bucket an idle GPU") {
    Mix mix = mix_of(never_idle({30, 70}, {"ms", "ms"}));
    mix.sharing = Sharing::driver;
    CHECK(simulate(mix).shares[0] == Approx(50).margin(1));
    mix.sharing = Sharing::token_bucket;
    mix.participants[0].demand.on_gpu = 5;
    mix.participants[0].demand.on_cpu = 15;
    CHECK(simulate(mix).busy < 97);
}
