#include "policy/ledger/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/locks.h"

namespace cuslice::ledger {

namespace {

std::size_t read_text(const char* path, char* text, std::size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t count = read(file, text, size - 1);
    close(file);
    if (count <= 0) return 0;
    text[count] = '\0';
    return static_cast<std::size_t>(count);
}

// Whether the owner of a place lives, be it a member's or a ticket's.
template <typename Owner>
bool owner_lives(const Owner& owner, std::uint32_t place, int file) {
    bool unknown = false;
    if (is_locked(file, byte_of_member(place), &unknown)) return true;
    if (owner.lock == LockKind::open_file && !unknown) return false;
    const std::uint64_t space = own_pid_namespace();
    if (!space || owner.pid_namespace != space) return unknown;
    return owner.start_time && start_time_of(owner.pid) == owner.start_time;
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

std::uint64_t read_pid_namespace() {
    char link[64];  // pid:[4026531836]
    const ssize_t length = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (length <= 5) return 0;
    link[length] = '\0';
    return strtoull(link + 5, nullptr, 10);
}

ProcessIdentity this_process() {
    ProcessIdentity self;
    self.pid = getpid();
    self.pid_namespace = read_pid_namespace();
    self.start_time = start_time_of(self.pid);
    return self;
}

void command_of_this_process(char* name, std::size_t size) {
    const std::size_t count = read_text("/proc/self/comm", name, size);
    name[count ? count - 1 : 0] = '\0';  // it ends in a newline
}

std::uint64_t image_number() {
    // 16 random bytes that the kernel makes for each program that it starts.
    const auto* random = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
    std::uint64_t number = 0;
    if (random) memcpy(&number, random + 8, sizeof number);
    return number;
}

bool is_stopped(std::int32_t pid) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_text(path, text, sizeof text)) return false;
    const char* at = strrchr(text, ')');
    return at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}

std::uint64_t own_pid_namespace() {
    // Of the process that asked last: a forked child may be in another one.
    static std::uint64_t here = 0;
    static std::int32_t asked_by = 0;
    const std::int32_t self = getpid();
    if (__atomic_load_n(&asked_by, __ATOMIC_ACQUIRE) != self) {
        __atomic_store_n(&here, read_pid_namespace(), __ATOMIC_RELAXED);
        __atomic_store_n(&asked_by, self, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&here, __ATOMIC_RELAXED);
}

bool is_this_process(const Member& member) {
    if (member.pid != getpid()) return false;  // as it mostly is
    // Without /proc it can't be told: the first process of each container has the same pid.
    if (!member.start_time || !member.pid_namespace) return false;
    const ProcessIdentity self = this_process();
    return member.start_time == self.start_time && member.pid_namespace == self.pid_namespace;
}

bool is_doubled(const File& file, const Member& member) {
    if (!is_launchers(member.role)) return false;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
        const Member& other = file.members[i];
        if (other.state.load() == MemberState::live && !is_launchers(other.role) && other.account == member.account &&
            other.pid == member.pid && other.start_time == member.start_time &&
            other.pid_namespace == member.pid_namespace)
            return true;
    }
    return false;
}

// In another pid namespace a carried one's end can't be seen, and what lives must not be taken back.
bool lives(const Member& member, std::uint32_t number, int file) {
    if (!is_carried(member.role)) return owner_lives(member, number, file);
    if (member.pid_namespace != own_pid_namespace()) return true;
    return member.start_time && start_time_of(member.pid) == member.start_time;
}

bool lives(const Ticket& ticket, std::uint32_t index, int file) {
    return owner_lives(ticket, place_of_ticket(index), file);
}

std::uint64_t now_realtime() { return kernel_clock(CLOCK_REALTIME); }

std::uint64_t now_monotonic_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec);
}

}  // namespace cuslice::ledger
