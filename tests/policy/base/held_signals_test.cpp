// SPDX-License-Identifier: Apache-2.0
// Signals that wait while a foreign lock may be held: those that have a handler, and no others.
#include "policy/base/held_signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "tests/catch.h"

using namespace cuslice;

namespace {

volatile sig_atomic_t handled = 0;

/// A handler that counts, until the test ends.
struct Handler {
    explicit Handler(int of) : signal(of) {
        struct sigaction action {};
        action.sa_handler = [](int) { handled = handled + 1; };
        sigaction(signal, &action, &before);
        handled = 0;
    }
    ~Handler() { sigaction(signal, &before, nullptr); }

    const int signal;
    struct sigaction before;
};

bool is_blocked(int signal) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, nullptr, &now);
    return sigismember(&now, signal) == 1;
}

/// The signal that ends a child which sends it to itself while signals are held back; 0 if none does.
int end_of_child(int signal) {
    const pid_t child = fork();
    if (child == 0) {
        std::signal(signal, SIG_DFL);  // Catch2 has handlers of some
        const HeldSignals held;
        raise(signal);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a signal that has a handler comes when what it would have left is done") {
    const int signal = GENERATE(SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGPROF);
    CAPTURE(signal);
    const Handler handler(signal);
    {
        const HeldSignals held;
        raise(signal);
        CHECK(handled == 0);
        { const HeldSignals again; }
        CHECK(handled == 0);
    }
    CHECK(handled == 1);
    CHECK_FALSE(is_blocked(signal));
}

TEST_CASE("a signal without a handler ends the program at once") {
    const int signal = GENERATE(SIGINT, SIGTERM, SIGALRM);
    CAPTURE(signal);
    CHECK(end_of_child(signal) == signal);
    // A handler of another signal's changes nothing.
    const Handler handler(SIGUSR1);
    CHECK(end_of_child(signal) == signal);
}

TEST_CASE("what a thread's own code causes, and what collectors stop threads with, isn't held back") {
    const int signal = GENERATE(SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPWR, SIGXCPU, SIGRTMIN);
    CAPTURE(signal);
    const Handler handler(signal);
    const HeldSignals held;
    CHECK_FALSE(is_blocked(signal));
}

TEST_CASE("what the program holds back itself stays held back") {
    const Handler handler(SIGUSR1), other(SIGUSR2);
    sigset_t own, before;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    sigprocmask(SIG_BLOCK, &own, &before);
    errno = 7;
    std::optional<HeldSignals> held(std::in_place);
    CHECK(is_blocked(SIGUSR2));
    held.reset();
    CHECK(errno == 7);
    CHECK(is_blocked(SIGUSR1));
    CHECK_FALSE(is_blocked(SIGUSR2));
    sigprocmask(SIG_SETMASK, &before, nullptr);
}
