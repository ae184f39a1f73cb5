// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/kernel_surroundings.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <limits>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::lease {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// The gate's lower half, which has the bits and the end of the number: a change of the gate is a change of it.
const uint32_t* futex_of(const Gate& gate) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return reinterpret_cast<const uint32_t*>(&gate.word);
}

}  // namespace

uint64_t KernelSurroundings::now() { return kernel_clock(CLOCK_MONOTONIC); }

// By the moment, not by a length: a sleep that a signal ended is as long as it would have been.
void KernelSurroundings::sleep(const Gate& gate, uint64_t shown, uint64_t until) {
    const int saved_errno = errno;
    timespec end{};
    end.tv_sec = static_cast<time_t>(until / kSecond);
    end.tv_nsec = static_cast<long>(until % kSecond);
    syscall(SYS_futex, futex_of(gate), FUTEX_WAIT_BITSET, static_cast<uint32_t>(shown), &end, nullptr,
            FUTEX_BITSET_MATCH_ANY);
    errno = saved_errno;
}

void KernelSurroundings::wake(Gate& gate) {
    const int saved_errno = errno;
    syscall(SYS_futex, futex_of(gate), FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
    errno = saved_errno;
}

Condition KernelSurroundings::condition_of(const Member& member) {
    const int saved_errno = errno;
    const ledger::ProcessIdentity process = ledger::process_of(member);
    const ledger::Life life = ledger::life_of(where(), member.presence);
    Condition condition = Condition::runs;
    if (!ledger::lives(life, member.lock, process, ledger::Trusted::own))
        condition = Condition::ended;
    else if (ledger::is_own_pid_namespace(process.pid_namespace) && ledger::is_stopped(process.pid))
        condition = Condition::stopped;
    errno = saved_errno;
    return condition;
}

bool KernelSurroundings::has_ended(uint64_t presence) {
    const int saved_errno = errno;
    const bool ended = ledger::life_of(where(), presence) == ledger::Life::ended;
    errno = saved_errno;
    return ended;
}

void KernelSurroundings::forget(uint64_t presence) {
    const int saved_errno = errno;
    ledger::remove_ended(where(), presence);
    errno = saved_errno;
}

}  // namespace cuslice::lease
