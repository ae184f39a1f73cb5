#pragma once
#include <cstddef>
#include <cstdint>

// Which process this is, as other processes can know it, and what /proc says of a process.
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
// What read_pid_namespace() says, asked once by each process: what it unshares is its children's.
std::uint64_t own_pid_namespace();
// In a forked child, which may have its parent's pid in a namespace of its own.
void forget_pid_namespace();

// Field 22 of /proc/PID/stat; 0 if there is no such process here, or only its zombie.
std::uint64_t start_time_of(std::int32_t pid);

// The name in /proc/self/comm.
void command_of_this_process(char* name, std::size_t size);

// A number of the program that this process runs: an exec changes it, and neither pid nor start time.
std::uint64_t image_number();

// Whether a process stands still because of a signal, as a debugger or Ctrl-Z leaves it.
bool is_stopped(std::int32_t pid);

}  // namespace cuslice::ledger
