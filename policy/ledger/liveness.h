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

// Field 22 of /proc/PID/stat; 0 if there is no such process here, or only its zombie.
std::uint64_t start_time_of(std::int32_t pid);

// The name in /proc/self/comm.
void command_of_this_process(char* name, std::size_t size);

// Locks one byte of the file for this process, or says that another has it. False for a descriptor that is closed, too.
bool lock_byte(int file, std::uint64_t byte);
void unlock_byte(int file, std::uint64_t byte);
// Waits for at most `milliseconds`: its owner may have been stopped.
bool lock_byte_within(int file, std::uint64_t byte, unsigned milliseconds);

inline std::uint64_t byte_of_member(std::uint32_t number) { return 1 + number; }

// Whether the process of this member, of the file behind `file`, still lives. The lock on its byte says so. It can be
// lost while the process lives (a program that closes every descriptor), so a free lock is not believed where /proc can
// be asked: in the same pid namespace. Ours among them.
bool lives(const Member& member, std::uint32_t number, int file);

// Nanoseconds since 1970, and seconds of CLOCK_MONOTONIC.
std::uint64_t now_realtime();
std::uint64_t now_monotonic_seconds();

}  // namespace cuslice::ledger
