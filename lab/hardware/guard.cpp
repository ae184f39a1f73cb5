// SPDX-License-Identifier: Apache-2.0
// Runs a program, with everything that it starts, for a limited time. At the time-out it writes the stack of every
// thread (stacks.h) and kills them all; a process that the program left behind is killed, too.
//
//   guard SECONDS+MORE program args…       SECONDS for the program, MORE to write the stacks
//
// The stacks are appended to the file that CHECK_STACKS names, else written to stderr. Exit status: the program's own,
// 128 + the signal that ended it, 124 after a time-out.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lab/hardware/stacks.h"

using namespace cuslice::check;

namespace {

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Reaps whatever has ended. True, with its status, once `program` is among it.
bool has_ended(pid_t program, int* status) {
    int other = 0;
    for (pid_t pid; (pid = waitpid(-1, &other, WNOHANG)) > 0;)
        if (pid == program)
            return *status = other, true;
    return false;
}

/// As long as there are any: one that is forked while others are killed shows in the next look.
void kill_descendants() {
    for (int round = 0; round < 100; round++) {
        const auto left = descendants(getpid());
        if (left.empty())
            return;
        for (pid_t pid : left)
            kill(pid, SIGKILL);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        usleep(10'000);
    }
}

void write_stacks(const char* what, double seconds) {
    const char* path = std::getenv("CHECK_STACKS");
    FILE* file = path ? std::fopen(path, "a") : stderr;
    if (!file)
        file = stderr;
    std::fprintf(file, "%s did not end in time\n", what);
    const double end = now() + seconds;
    for (pid_t pid : descendants(getpid()))
        print_stacks(file, pid, end - now());
    if (file != stderr)
        std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
    char* rest = nullptr;
    const double seconds = argc > 2 ? std::strtod(argv[1], &rest) : 0;
    if (seconds <= 0 || *rest != '+')
        return std::fprintf(stderr, "guard SECONDS+MORE program args\n"), 64;
    const double more = std::strtod(rest + 1, nullptr);
    // Processes whose parent has ended become this one's children, so that none gets away.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left to tell
    const pid_t program = fork();
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[2], argv + 2);
        const int error = errno;
        std::perror(argv[2]);
        _exit(error == ENOENT ? 127 : 126);
    }
    if (program < 0)
        return std::perror("fork"), 1;

    int status = 0;
    const double end = now() + seconds;
    bool ended = false;
    while (!(ended = has_ended(program, &status)) && now() < end)
        usleep(5'000);
    if (!ended)
        write_stacks(argv[2], more);
    kill_descendants();
    if (!ended)
        return 124;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
