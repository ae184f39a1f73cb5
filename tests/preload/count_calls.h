// SPDX-License-Identifier: Apache-2.0
// How many system calls a program makes, with all its threads and children: what is bounded is told so without a clock.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "tests/cli/child.h"

namespace cuslice::tests {

struct Traced {
    int exit_code = 0;
    long calls = 0;
    std::string err;
};

/// The caller has no other children that could end meanwhile, but such as are stopped already.
inline Traced count_calls(const std::vector<std::string>& words, const std::vector<std::string>& environment) {
    const Folder folder;
    const std::string errors = folder.write("errors", "");
    std::vector<char*> arguments, lines;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& line : environment)
        lines.push_back(const_cast<char*>(line.c_str()));
    arguments.push_back(nullptr), lines.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        const int said = open(errors.c_str(), O_WRONLY), none = open("/dev/null", O_RDWR);
        dup2(none, STDIN_FILENO), dup2(none, STDOUT_FILENO), dup2(said, STDERR_FILENO);
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGSTOP);
        execve(arguments[0], arguments.data(), lines.data());
        _exit(125);
    }
    Traced traced;
    int status = 0;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, nullptr,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    std::set<pid_t> known{child};
    while (!known.empty()) {
        const pid_t one = waitpid(-1, &status, __WALL);
        if (one < 0)
            break;
        if (!WIFSTOPPED(status)) {
            known.erase(one);
            if (one == child)
                traced.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        const bool is_new = known.insert(one).second;  // it begins with a stop of its own
        const int signal = WSTOPSIG(status);
        const bool call = signal == (SIGTRAP | 0x80);
        traced.calls += call;
        const bool ours = call || signal == SIGTRAP || (is_new && signal == SIGSTOP);
        ptrace(PTRACE_SYSCALL, one, nullptr, ours ? 0 : signal);
    }
    traced.calls /= 2;  // a stop before each and one after
    traced.err = read_text(errors);
    return traced;
}

}  // namespace cuslice::tests
