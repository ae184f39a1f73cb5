#include "virtual_gpu/fake/books/liveness.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuslice::fake {
namespace {

bool maps_file(int pid, std::uint64_t address, std::uint64_t inode) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/%d/maps", pid);
    std::FILE* maps = std::fopen(path, "re");
    if (maps == nullptr) return false;
    bool found = false;
    char line[512];
    while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long start = 0, number = 0;
        found =
            std::sscanf(line, "%lx-%*x %*s %*x %*s %lu", &start, &number) == 2 && start == address && number == inode;
        // A long path: its tail must not be taken for a line.
        while (std::strchr(line, '\n') == nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
        }
    }
    std::fclose(maps);
    return found;
}

/// A field of /proc/PID/stat, counted as its manual page does; 0 if the process isn't there.
std::uint64_t stat_field(int pid, int wanted) {
    char path[40], text[1024];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) return 0;
    text[size] = '\0';
    // The command's name may hold anything, blanks and brackets too: count from the last bracket.
    const char* at = std::strrchr(text, ')');
    for (int field = 2; at != nullptr && field < wanted; field++) at = std::strchr(at + 1, ' ');
    return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

}  // namespace

std::uint64_t process_start_time(int pid) { return stat_field(pid, 22); }

int parent_process(int pid) { return static_cast<int>(stat_field(pid, 4)); }

bool slot_owner_lives(const Slot& slot, unsigned number, int lock_file, std::uint64_t inode) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = 1 + static_cast<off_t>(number);
    lock.l_len = 1;
    if (fcntl(lock_file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return true;
    const int pid = slot.pid.load();
    return process_start_time(pid) == slot.start_time.load() && maps_file(pid, slot.mapped_at.load(), inode);
}

}  // namespace cuslice::fake
