#include "policy/ledger/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace cuslice::ledger {

namespace {

struct flock one_byte(short type, std::uint64_t byte) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(byte);
    lock.l_len = 1;
    return lock;
}

std::size_t read_text(const char* path, char* text, std::size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t count = read(file, text, size - 1);
    close(file);
    if (count <= 0) return 0;
    text[count] = '\0';
    return static_cast<std::size_t>(count);
}

std::uint64_t nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t start_time_of(std::int32_t pid) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_text(path, text, sizeof text)) return 0;
    // The command's name may hold anything, blanks and brackets too: count from the last bracket.
    const char* at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return 0;
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, nullptr, 10) : 0;
}

ProcessIdentity this_process() {
    ProcessIdentity self;
    self.pid = getpid();
    char link[64];  // pid:[4026531836]
    const ssize_t length = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (length > 5) {
        link[length] = '\0';
        self.pid_namespace = strtoull(link + 5, nullptr, 10);
    }
    self.start_time = start_time_of(self.pid);
    return self;
}

void command_of_this_process(char* name, std::size_t size) {
    const std::size_t count = read_text("/proc/self/comm", name, size);
    name[count ? count - 1 : 0] = '\0';  // it ends in a newline
}

bool lock_byte(int file, std::uint64_t byte) {
    struct flock lock = one_byte(F_WRLCK, byte);
    return fcntl(file, F_SETLK, &lock) == 0;
}

void unlock_byte(int file, std::uint64_t byte) {
    struct flock lock = one_byte(F_UNLCK, byte);
    fcntl(file, F_SETLK, &lock);
}

bool lock_byte_within(int file, std::uint64_t byte, unsigned milliseconds) {
    constexpr long kPauseMicroseconds = 50;
    for (unsigned long waited = 0;; waited += kPauseMicroseconds) {
        if (lock_byte(file, byte)) return true;
        if ((errno != EACCES && errno != EAGAIN) || waited >= milliseconds * 1000ul) return false;
        const timespec pause{0, kPauseMicroseconds * 1000};
        nanosleep(&pause, nullptr);
    }
}

bool lives(const Member& member, std::uint32_t number, int file) {
    struct flock lock = one_byte(F_RDLCK, byte_of_member(number));
    if (fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return true;
    static std::uint64_t here = 0;  // the same whoever asks first
    std::uint64_t space = __atomic_load_n(&here, __ATOMIC_RELAXED);
    if (!space) {
        space = this_process().pid_namespace;
        __atomic_store_n(&here, space, __ATOMIC_RELAXED);
    }
    if (!space || member.pid_namespace != space) return false;
    return member.start_time && start_time_of(member.pid) == member.start_time;
}

std::uint64_t now_realtime() { return nanoseconds(CLOCK_REALTIME); }

std::uint64_t now_monotonic_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec);
}

}  // namespace cuslice::ledger
