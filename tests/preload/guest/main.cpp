// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "tests/preload/guest/guest.h"
#include "tests/preload/guest/refusal_check.h"

namespace guest {
namespace {

const Commands& commands() {
    static const Commands all = [] {
        Commands made;
        add_capture_commands(made);
        add_context_commands(made);
        add_ending_commands(made);
        add_first_commands(made);
        add_graph_commands(made);
        add_host_commands(made);
        add_leave_commands(made);
        add_memory_commands(made);
        add_nvml_commands(made);
        add_object_commands(made);
        add_process_commands(made);
        add_random_commands(made);
        add_sharing_commands(made);
        add_thread_commands(made);
        add_turn_commands(made);
        add_work_commands(made);
        return made;
    }();
    return all;
}

}  // namespace

std::string execute(Program& program, const Words& words) {
    const auto command = commands().find(words.at(0));
    if (command == commands().end())
        return "there is no command " + words[0];
    try {
        return command->second(program, Words(words.begin() + 1, words.end()));
    } catch (const std::out_of_range&) {
        return words[0] + ": a word is missing, or a name stands for nothing";
    }
}

}  // namespace guest

int main(int count, char** words) {
    guest::Program program;
    std::string why;
    if (count != 2 || !guest::fill(program.driver, words[1], why)) {
        std::fprintf(stderr, "guest: %s\n", count == 2 ? why.c_str() : "one word is needed, the route");
        return 3;
    }
    guest::check_refusals(program.driver);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        guest::Words parts;
        for (std::string part; in >> part;)
            parts.push_back(part);
        if (parts.empty())
            continue;
        const std::string answer = guest::execute(program, parts), changes = guest::take_changes();
        std::cout << (changes.empty() ? answer : "changed: " + changes) << std::endl;
    }
    return 0;
}
