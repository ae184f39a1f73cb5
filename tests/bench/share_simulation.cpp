// SPDX-License-Identifier: Apache-2.0
// Shares of a GPU's time, simulated: the lease's real code on a clock of its own, with programs that submit kernels and
// a GPU that runs them. A simulation judges it here, and no GPU.
#include <cstdio>
#include <string>
#include <vector>

#include "tests/policy/lease/simulation/mix.h"

using namespace cuslice::tests;

namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() ? "" : between) + word;
    return text;
}

const char* name_of(Sharing sharing) {
    return sharing == Sharing::lease ? "lease" : sharing == Sharing::driver ? "no share" : "bucket";
}

void print_head(const char* what) {
    std::printf("\n%-36s%-10s%7s%7s%9s%9s  %s\n", what, "", "10 s", "1 s", "busy %", "wait ms", "had %");
}

void print(const std::string& what, const Mix& mix, const Figures& figures) {
    std::printf("%-36s%-10s%7.2f%7.2f%9.2f%9.1f ", what.c_str(), name_of(mix.sharing), figures.worst_10_s,
                figures.worst_1_s, figures.busy, figures.longest_wait);
    for (const double share : figures.shares)
        std::printf(" %.1f", share);
    std::printf("\n");
    std::fflush(stdout);
}

Mix mix_of(std::vector<Participant> participants, Sharing sharing = Sharing::lease) {
    Mix mix;
    mix.participants = std::move(participants);
    mix.sharing = sharing;
    return mix;
}

struct Case {
    std::vector<uint32_t> weights;
    std::vector<std::string> kernels;
    std::string name() const {
        std::vector<std::string> words;
        for (const uint32_t weight : weights)
            words.push_back(std::to_string(weight));
        return joined(words, ":") + " " + joined(kernels, ",");
    }
};

// The design's table, and its quanta.
const std::vector<Case> kTable = {
    {{30, 70}, {"ms", "ms"}},    {{10, 90}, {"ms", "5ms"}},    {{25, 25, 50}, {"tiny", "ms", "5ms"}},
    {{1, 99}, {"ms", "ms"}},     {{30, 70}, {"50ms", "tiny"}}, {{50, 50}, {"llm", "5ms"}},
    {{30, 70}, {"50ms", "50ms"}}};

void never_idle_programs() {
    print_head("never idle");
    for (const Case& one : kTable)
        for (const Sharing sharing : {Sharing::lease, Sharing::driver, Sharing::token_bucket}) {
            const Mix mix = mix_of(never_idle(one.weights, one.kernels), sharing);
            print(one.name(), mix, simulate_seeds(mix));
        }
}

void quanta() {
    print_head("quantum and depth of the queue, ms");
    for (const double quantum : {5, 10, 20, 50, 100})
        for (const double depth : {0.5, 2.0}) {
            Mix mix = mix_of(never_idle({30, 70}, {"ms", "ms"}));
            mix.quantum = quantum;
            mix.depth = depth;
            char name[40];
            std::snprintf(name, sizeof name, "%g, %g", quantum, depth);
            print(name, mix, simulate_seeds(mix));
        }
}

void pauses() {
    print_head("pauses: ms on the GPU/on the CPU");
    const std::vector<std::pair<double, double>> demands = {{10, 10}, {20, 5}, {5, 15}, {2, 2}};
    for (const bool both : {true, false})
        for (const auto& [on_gpu, on_cpu] : demands)
            for (const Sharing sharing : {Sharing::lease, Sharing::driver}) {
                std::vector<Participant> two = never_idle({30, 70}, {"ms", "ms"});
                two[0].demand.on_gpu = on_gpu;
                two[0].demand.on_cpu = on_cpu;
                if (both)
                    two[1].demand = two[0].demand;
                Mix mix = mix_of(two, sharing);
                // The driver's time slices cost nothing here, so that they are no excuse.
                mix.gap = sharing == Sharing::driver ? 0 : mix.gap;
                char name[48];
                std::snprintf(name, sizeof name, "%g/%g, the other %s", on_gpu, on_cpu, both ? "too" : "never idle");
                print(name, mix, simulate_seeds(mix));
            }
}

void others() {
    print_head("others");
    print("alone", mix_of(never_idle({30}, {"ms"})), simulate_seeds(mix_of(never_idle({30}, {"ms"}))));
    Mix drains = mix_of(never_idle({30, 70}, {"ms", "5ms"}));
    drains.depth_error = 0.5;
    print("30:70 ms,5ms, queues by 50 %", drains, simulate_seeds(drains));
    const Mix twenty = mix_of(never_idle(std::vector<uint32_t>(20, 5), std::vector<std::string>(20, "ms")));
    print("20 jobs of 5 %", twenty, simulate_seeds(twenty));
    Mix capped = mix_of(never_idle({50}, {"ms"}));
    capped.participants[0].cap = 40;
    print("alone with a cap of 40 %", capped, simulate_seeds(capped));
    Mix two_gpus = mix_of(never_idle({30, 70}, {"ms", "5ms"}));
    two_gpus.gpus = 2;
    for (Participant& participant : two_gpus.participants)
        participant.gpus = 3;
    print("two jobs on two GPUs, the first", two_gpus, simulate_seeds(two_gpus, 0));
    print("two jobs on two GPUs, the second", two_gpus, simulate_seeds(two_gpus, 1));
}

}  // namespace

int main() {
    never_idle_programs();
    quanta();
    pauses();
    others();
}
