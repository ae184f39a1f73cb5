// Children that a test traces.
#pragma once

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cuslice::tests {

/// Whether a process may trace its children. Some sandboxes don't allow it, and qemu has no ptrace.
inline bool can_trace() {
    const pid_t child = fork();
    if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace cuslice::tests
