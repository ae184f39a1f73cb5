// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes that have a place in one ledger.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "policy/ledger/ledger.h"
#include "tests/bench/timing.h"

namespace cuslice::bench {

inline constexpr uint64_t kCapacity = 128ull << 30;
inline constexpr int64_t kBytes = 4096;

// A member of one group, as every process here is.
struct Place {
    static inline const char* folder = nullptr;
    ledger::Ledger ledger;
    ledger::Membership membership;

    void join(const char* group, uint64_t limit) {
        static ledger::Committed committed;
        uint64_t available = 0;
        ledger::LedgerError failure;
        ledger::Request request;
        request.kind = ledger::AccountKind::group;
        request.name = group;
        request.limit = limit;
        if (!ledger.open(folder, "GPU-bench", kCapacity, false, &failure) ||
            ledger.join(request, 0, &membership, &committed, &available, &failure) != ledger::Joined::yes) {
            std::fprintf(stderr, "bench: %s\n", failure.text);
            std::exit(1);
        }
    }
    void pair() {
        if (!membership.reserve(kBytes, 0, nullptr))
            std::abort();
        membership.change(-kBytes);
    }
};

// Runs `work` in a process of its own, on a core of its own, until it is killed; returns when it has begun.
template <typename Work>
pid_t beside(unsigned core, Work work) {
    int begun[2];
    if (pipe(begun) != 0)
        std::exit(1);
    const pid_t child = fork();
    if (child == 0) {
        if (core && !pin(core))
            _exit(1);
        work([&] {
            if (write(begun[1], "x", 1) != 1)
                _exit(1);
        });
        _exit(0);
    }
    char letter;
    close(begun[1]);
    if (read(begun[0], &letter, 1) != 1)
        std::exit(1);
    close(begun[0]);
    return child;
}

inline void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

// How long what a killed process held is out of another's reach.
void measure_kills();

}  // namespace cuslice::bench
