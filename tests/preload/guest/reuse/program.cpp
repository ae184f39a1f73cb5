// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/reuse/program.h"

#include <set>
#include <thread>

namespace reuse {

Command read_command(char** words) {
    Command command;
    for (const char* place = words[1]; *place; place++)
        command.ordinals.push_back(static_cast<unsigned>(*place - '0'));
    command.plan.operations = std::strtoull(words[2], nullptr, 10);
    command.plan.seed = std::strtoull(words[3], nullptr, 10);
    command.plan.most_live = std::strtoull(words[4], nullptr, 10);
    command.threads = static_cast<unsigned>(std::strtoul(words[5], nullptr, 10));
    const std::string ways = words[6];
    command.plan.captures = ways.find('c') != std::string::npos;
    command.plan.async_frees = ways.find('a') != std::string::npos;
    command.plan.peers = ways.find('p') != std::string::npos;
    return command;
}

std::vector<CUcontext> make_places(const Command& command) {
    REUSE_MUST(cuInit(0));
    std::vector<CUcontext> places;
    std::set<unsigned> seen;
    for (const unsigned ordinal : command.ordinals) {
        CUcontext context = nullptr;
        if (seen.insert(ordinal).second)
            REUSE_MUST(cuDevicePrimaryCtxRetain(&context, static_cast<CUdevice>(ordinal)));
        else
            REUSE_MUST(cuCtxCreate(&context, nullptr, 0, static_cast<CUdevice>(ordinal)));
        places.push_back(context);
    }
    return places;
}

Outcome run(const Command& command, const std::vector<CUcontext>& places, const Memory& memory) {
    std::vector<Outcome> outcomes(command.threads);
    std::vector<std::thread> threads;
    const auto work = [&](unsigned number) {
        Plan plan = command.plan;
        plan.operations /= command.threads;
        plan.most_live /= command.threads;
        plan.seed = plan.seed * 1000 + number;
        outcomes[number] = Churn(places, memory, plan).run();
    };
    // One thread's order is the seed's alone; so it is this one.
    for (unsigned i = 1; i < command.threads; i++)
        threads.emplace_back(work, i);
    work(0);
    for (std::thread& thread : threads)
        thread.join();
    Outcome all;
    for (const Outcome& outcome : outcomes)
        all.add(outcome);
    return all;
}

void print(const Outcome& outcome) {
    const auto number = [](const char* word, uint64_t n) {
        std::printf("%s %llu ", word, static_cast<unsigned long long>(n));
    };
    number("wrong", outcome.wrong);
    number("looked_at", outcome.looked_at);
    number("allocations", outcome.allocations);
    number("frees", outcome.frees);
    number("refused", outcome.refused);
    number("captures", outcome.captures);
}

}  // namespace reuse
