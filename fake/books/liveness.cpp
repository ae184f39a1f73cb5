// SPDX-License-Identifier: Apache-2.0
#include "fake/books/liveness.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fake/books/byte_lock.h"
#include "fake/proc_text.h"

namespace cuslice::fake {
namespace {

/// Judges a process whose file in /proc can't be opened or read: Ended if the file is gone from a readable /proc, else
/// Unknown.
Life without_file(int error) {
    const bool gone = error == ENOENT || error == ESRCH;
    return gone && access("/proc/self/stat", R_OK) == 0 ? Life::Ended : Life::Unknown;
}

/// A file of /proc's about a process. Where /proc is of another pid namespace than this process's, that number is some
/// other process there, and "self" is still this one.
struct ProcPath {
    ProcPath(int pid, const char* file) {
        if (pid == getpid())
            std::snprintf(text, sizeof text, "/proc/self/%s", file);
        else
            std::snprintf(text, sizeof text, "/proc/%d/%s", pid, file);
    }
    char text[40];
};

Life maps_file(int pid, uint64_t address, uint64_t inode) {
    const ProcPath path(pid, "maps");
    std::FILE* maps = std::fopen(path.text, "re");
    if (maps == nullptr)
        return without_file(errno);
    bool found = false;
    char line[512];
    while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long number = 0;
        // Mostly it is another mapping, which its first number says.
        found = std::strtoul(line, nullptr, 16) == address &&
                std::sscanf(line, "%*x-%*x %*s %*x %*s %lu", &number) == 1 && number == inode;
        // A long path: its tail must not be taken for a line.
        while (std::strchr(line, '\n') == nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
        }
    }
    std::fclose(maps);
    return found ? Life::Lives : Life::Ended;
}

/// A field of /proc/PID/stat, counted as its manual page does; 0, and `error` set, if it can't be read.
uint64_t stat_field(int pid, int wanted, int& error) {
    const ProcPath path(pid, "stat");
    char text[1024];
    error = 0;
    if (!read_proc_text(path.text, text)) {
        error = errno;
        return 0;
    }
    // The command's name may hold anything, blanks and brackets too: count from the last bracket.
    const char* at = std::strrchr(text, ')');
    for (int field = 2; at != nullptr && field < wanted; field++)
        at = std::strchr(at + 1, ' ');
    return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

}  // namespace

uint64_t process_start_time(int pid) {
    int error = 0;
    return stat_field(pid, 22, error);
}

int parent_process(int pid) {
    int error = 0;
    return static_cast<int>(stat_field(pid, 4, error));
}

bool is_stopped(int pid) {
    char path[40], text[1024];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_proc_text(path, text))
        return false;
    const char* const at = std::strrchr(text, ')');
    return at != nullptr && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}

Life life_of_owner(const OwnerIdentity& owner, off_t byte, int lock_file, uint64_t inode, int* pid_here) {
    struct flock lock = lock_of(F_WRLCK, byte);
    if (pid_here != nullptr)
        *pid_here = owner.pid;
    if (fcntl(lock_file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) {
        if (pid_here != nullptr)
            *pid_here = lock.l_pid;
        return Life::Lives;
    }
    int error = 0;
    const uint64_t start_time = stat_field(owner.pid, 22, error);
    if (error != 0)
        return without_file(error);
    return start_time == owner.start_time ? maps_file(owner.pid, owner.mapped_at, inode) : Life::Ended;
}

Life life_of_owner(const Slot& slot, unsigned number, int lock_file, uint64_t inode, int* pid_here) {
    const OwnerIdentity owner{slot.pid, slot.start_time, slot.mapped_at};
    return life_of_owner(owner, 1 + static_cast<off_t>(number), lock_file, inode, pid_here);
}

}  // namespace cuslice::fake
