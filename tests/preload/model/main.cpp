// SPDX-License-Identifier: Apache-2.0
// A random model of four programs of two users on fake GPUs, under the real LD_PRELOAD, and of a third user who attacks
// them by way of the ledgers' folder (hostile.h). What is drawn is decided by the
// seed; only steps that several programs take at the same time depend on the machine.
//
//   model [--seed N] [--steps N] [--seconds N] [--round-steps N] [--only COMBINATION] [--round N] [--story N]
//         [--hostile 0]
//
//   --steps        so many steps in all, over all combinations; or, with --seconds, rounds are begun for so long
//   --round-steps  steps of a round, in which the programs begin and end
//   --only         rounds of one combination, such as not-listed/growth-strict
//   --story        so many of the last steps are shown after a failure; 30
//   --round        only the round with this number, as a failure names it
//   --hostile      0: without the hostile user, whose steps are drawn apart from the others'
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "tests/preload/model/mischief.h"
#include "tests/preload/model/round.h"
#include "tests/skip.h"

namespace cuslice::tests::model {
namespace {

/// The last combination's obstacle.
std::string missing;

struct Options {
    uint64_t seed = 1, steps = 0, seconds = 0, round_steps = 120, round = ~0ull, story = 30, hostile = 1;
    std::string only;
};

bool read(int count, char** words, Options& options) {
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string word = words[i];
        if (word == "--only")
            options.only = words[i + 1];
        else if (uint64_t* const number = word == "--seed"          ? &options.seed
                                          : word == "--steps"       ? &options.steps
                                          : word == "--seconds"     ? &options.seconds
                                          : word == "--round-steps" ? &options.round_steps
                                          : word == "--story"       ? &options.story
                                          : word == "--hostile"     ? &options.hostile
                                          : word == "--round"       ? &options.round
                                                                    : nullptr)
            *number = std::strtoull(words[i + 1], nullptr, 10);
        else
            return false;
    }
    if (options.steps == 0 && options.seconds == 0)
        options.steps = 2000;
    return count % 2 == 1;
}

int model(const Options& options) {
    const auto combinations = Combination::all();
    const auto begun = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun).count());
    };
    std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
    std::map<std::string, Totals> of_each;
    Totals totals;
    std::set<std::string> skipped;
    bool known = false;
    const bool one = options.round != ~0ull;
    for (uint64_t round = one ? options.round : 0;; ++round) {
        if (options.seconds ? seconds() >= options.seconds : totals.steps >= options.steps)
            break;
        const Combination& combination = combinations[round % combinations.size()];
        const std::string name = combination.name();
        if (!options.only.empty() && name != options.only) {
            if (round >= combinations.size() && !known) {
                std::printf("there is no combination %s\n", options.only.c_str());
                return 64;
            }
            continue;
        }
        known = true;
        if (!Place::possible(combination)) {
            if (skipped.insert(name).second)
                std::printf("SKIPPED: %s: %s\n", name.c_str(), missing.c_str());
            if (skipped.size() == (options.only.empty() ? combinations.size() : 1))
                return 77;
            continue;
        }
        std::seed_seq numbers{options.seed, round};
        uint64_t seed[1];
        numbers.generate(seed, seed + 1);
        std::unique_ptr<Round> running;
        const uint64_t before = totals.steps;
        try {
            running = std::make_unique<Round>(combination, seed[0] << 32 | round, options.hostile != 0, totals);
            running->run(static_cast<unsigned>(options.round_steps));
        } catch (const std::exception& found) {
            std::printf("FAILED: %s, seed %llu, round %llu: %s\n", name.c_str(),
                        static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(round),
                        found.what());
            if (running)
                std::printf("the last steps:\n%s", running->story(options.story).c_str());
            std::printf("again: model --seed %llu --round %llu --round-steps %llu --steps 1\n",
                        static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(round),
                        static_cast<unsigned long long>(options.round_steps));
            return 1;
        }
        of_each[name].steps += totals.steps - before;
        of_each[name].rounds++;
    }
    std::printf(
        "left out of not-listed: IPC, and contexts and modules of several programs at the same time "
        "(docs/boundaries.md)\n");
    for (const auto& [name, each] : of_each)
        std::printf("%-32s %6llu rounds %8llu steps\n", name.c_str(), static_cast<unsigned long long>(each.rounds),
                    static_cast<unsigned long long>(each.steps));
    for (const auto& [name, count] : totals.actions)
        std::printf("%-32s %6llu\n", name.c_str(), static_cast<unsigned long long>(count));
    std::printf(
        "%llu steps in %llu rounds, %llu answers, %llu of them refused memory; the longest sleep %llu ms; "
        "%llu starts looked again for longer than 2 s; %llu s\n",
        static_cast<unsigned long long>(totals.steps), static_cast<unsigned long long>(totals.rounds),
        static_cast<unsigned long long>(totals.answers), static_cast<unsigned long long>(totals.refusals),
        static_cast<unsigned long long>(totals.longest_ms), static_cast<unsigned long long>(totals.settled),
        static_cast<unsigned long long>(seconds()));
    return skipped.empty() ? 0 : 77;
}

}  // namespace
}  // namespace cuslice::tests::model

void cuslice::tests::skip(const std::string& why) { model::missing = why; }

int main(int count, char** words) {
    using cuslice::tests::model::dropped_program;
    if (count == 4 && std::string(words[1]) == "--dropped")
        return dropped_program(static_cast<unsigned>(std::stoul(words[2])), std::stoull(words[3]));
    cuslice::tests::model::Options options;
    if (!cuslice::tests::model::read(count, words, options)) {
        std::fprintf(stderr, "model: see the head of tests/preload/model/main.cpp for its options\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    return cuslice::tests::model::model(options);
}
