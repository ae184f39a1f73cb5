// SPDX-License-Identifier: Apache-2.0
#include "policy/base/held_signals.h"

#include <cerrno>

namespace cuslice {

namespace {

// The kernel's highest number of a signal that isn't for real time.
constexpr int kLastStandard = 31;

constexpr int kNeverHeld[] = {
    SIGSEGV, SIGBUS,  SIGFPE, SIGILL, SIGTRAP, SIGABRT,
    SIGSYS,   // by seccomp: the kernel ends a process that blocks it
    SIGPWR,   // collectors stop threads with it
    SIGXCPU,  // and let them go on with this one
    SIGKILL, SIGSTOP,
};

bool may_be_held(int signal) {
    for (const int never : kNeverHeld)
        if (signal == never)
            return false;
    return true;
}

bool has_handler(int signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) != 0)
        return false;
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

// False if there is none.
bool find_handled(sigset_t* handled) {
    bool any = false;
    sigemptyset(handled);
    for (int signal = 1; signal <= kLastStandard; signal++) {
        if (!may_be_held(signal) || !has_handler(signal))
            continue;
        sigaddset(handled, signal);
        any = true;
    }
    return any;
}

}  // namespace

// By the C library's sigprocmask: on Linux it is the thread's own mask that it sets, and pthread_sigmask is in a
// library of its own before glibc 2.32.
HeldSignals::HeldSignals() {
    const int saved_errno = errno;
    sigset_t handled;
    if (find_handled(&handled))
        holds_ = sigprocmask(SIG_BLOCK, &handled, &before_) == 0;
    errno = saved_errno;
}

HeldSignals::~HeldSignals() {
    if (!holds_)
        return;
    const int saved_errno = errno;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    errno = saved_errno;
}

}  // namespace cuslice
