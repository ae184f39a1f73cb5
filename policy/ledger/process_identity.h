// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// Identity of this process, as other processes can know it, and facts that /proc tells of a process.
namespace cuslice::ledger {

// Makes a pid mean one process and no other.
struct ProcessIdentity {
    int32_t pid = 0;
    uint64_t pid_namespace = 0;  // 0: /proc does not say
    uint64_t start_time = 0;     // clock ticks since boot; 0: /proc does not say
};
ProcessIdentity this_process();
// The part of it that tells where a pid means something.
uint64_t read_pid_namespace();
// Answer of read_pid_namespace(), asked once by each process: a namespace that it unshares is its children's.
uint64_t own_pid_namespace();
/// True of a pid namespace that this process is in: /proc tells about its pids.
bool is_own_pid_namespace(uint64_t space);
// In a forked child, which may have its parent's pid in a namespace of its own, and another time namespace.
void forget_pid_namespace();

/// When a process started: field 22 of /proc/PID/stat, which the kernel shifts by the reader's time namespace, shifted
/// back. So it is the same number for all readers of one machine, but for a tick where a namespace's offset is no whole
/// number of ticks: compare by is_same_start(). 0 if there is no such process here, or only its zombie. Thread-safe.
uint64_t start_time_of(int32_t pid);

/// True if two start times that were read in any time namespaces are of one process, if the pid is. A pid doesn't come
/// back within two ticks. Not of times that are 0: they are not known. Pure.
constexpr bool is_same_start(uint64_t a, uint64_t b) { return a != 0 && b != 0 && (a > b ? a - b : b - a) <= 1; }

/// The same where neither may be known, as without /proc. Pure.
constexpr bool may_be_same_start(uint64_t a, uint64_t b) { return a == b || is_same_start(a, b); }

/// True if /proc shows the process. False where it can't, as of one in another pid namespace.
bool is_running(const ProcessIdentity& process);
/// The process that a member, a ticket, a holder or a waiter is of.
template <typename Owner>
ProcessIdentity process_of(const Owner& owner) {
    return {owner.pid, owner.pid_namespace, owner.start_time};
}

// The name in /proc/self/comm.
void command_of_this_process(char* name, size_t size);

// A number of the program that this process runs: an exec changes it, and neither pid nor start time.
uint64_t image_number();

/// A number that no other process can guess. Thread-safe.
uint64_t random_number();

// True if a process stands still because of a signal, as a debugger or Ctrl-Z leaves it.
bool is_stopped(int32_t pid);
/// True if a process's first thread runs or waits for a processor. Thread-safe.
bool is_runnable(int32_t pid);

}  // namespace cuslice::ledger
