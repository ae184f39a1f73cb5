#pragma once
#include "policy/ledger/layout.h"

// Who this process is, and whether another one still lives.
namespace cuslice::ledger {

// What makes a pid mean one process and no other.
struct ProcessIdentity {
    std::int32_t pid = 0;
    std::uint64_t pid_namespace = 0;  // 0: /proc does not say
    std::uint64_t start_time = 0;     // clock ticks since boot; 0: /proc does not say
};
ProcessIdentity this_process();
// The part of it that tells where a pid means something.
std::uint64_t read_pid_namespace();

// Field 22 of /proc/PID/stat; 0 if there is no such process here, or only its zombie.
std::uint64_t start_time_of(std::int32_t pid);

// The name in /proc/self/comm.
void command_of_this_process(char* name, std::size_t size);

// A number of the program that this process runs: an exec changes it, and neither pid nor start time.
std::uint64_t image_number();

// Whether a process stands still because of a signal, as a debugger or Ctrl-Z leaves it.
bool is_stopped(std::int32_t pid);

// Whether this process is, or was before an exec, the one that the member is of.
bool is_this_process(const Member& member);
// What read_pid_namespace() says, asked once by each process.
std::uint64_t own_pid_namespace();

// The launcher's place, of a process that has one of its own in the same account by now: nothing to be shown.
bool is_doubled(const File& file, const Member& member);

// Whether member `number`, of the file behind `file`, still lives. The lock on its byte says so. A lock of the process
// can be lost while the process lives (a program that closes every descriptor), so where it is free /proc is asked,
// which knows the processes of the same pid namespace. Ours among them. Of a carried member /proc alone is asked, as
// its lock is on another file.
bool lives(const Member& member, std::uint32_t number, int file);
// The same for a ticket.
bool lives(const Ticket& ticket, std::uint32_t index, int file);

// Nanoseconds since 1970, and seconds of CLOCK_MONOTONIC.
std::uint64_t now_realtime();
std::uint64_t now_monotonic_seconds();

}  // namespace cuslice::ledger
