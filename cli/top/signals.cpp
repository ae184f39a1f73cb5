// SPDX-License-Identifier: Apache-2.0
#include "cli/top/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace cuslice::cli::top {
namespace {

constexpr int kHeld[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

}  // namespace

Signals::Signals() {
    sigemptyset(&held_);
    for (const int signal : kHeld) {
        // The kernel keeps also an ignored one while it is blocked, and nohup's SIGHUP is to stay ignored.
        struct sigaction action {};
        const bool ignored = ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
        if (!ignored)
            sigaddset(&held_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
    descriptor_ = ::signalfd(-1, &held_, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::take() const {
    signalfd_siginfo info{};
    return ::read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::let(int signal) {
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::raise(signal);
    ::sigprocmask(SIG_UNBLOCK, &one, &before);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace cuslice::cli::top
