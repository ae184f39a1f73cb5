// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/process_identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/number.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::ledger {

namespace {

size_t read_text(const char* path, char* text, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t count = read(file, text, size - 1);
    close(file);
    if (count <= 0)
        return 0;
    text[count] = '\0';
    return static_cast<size_t>(count);
}

constexpr int64_t kSecond = 1'000'000'000;

// False: there are no such namespaces here, or they can't be seen.
bool same_time_namespace() {
    char own[64], childrens[64];
    const ssize_t a = readlink("/proc/self/ns/time", own, sizeof own);
    const ssize_t b = readlink("/proc/self/ns/time_for_children", childrens, sizeof childrens);
    return a > 0 && a == b && memcmp(own, childrens, static_cast<size_t>(a)) == 0;
}

// Nanoseconds by which this process's time namespace shifts what /proc says of starts; 0 in the machine's own.
int64_t read_boottime_offset() {
    char text[256];
    // The file is about the namespace of the children. Whoever has just unshared it is still in the one from before,
    // which nothing tells about.
    if (!read_text("/proc/self/timens_offsets", text, sizeof text) || !same_time_namespace())
        return 0;
    const char* at = strstr(text, "boottime");
    if (!at)
        return 0;
    const char* end = nullptr;
    const int64_t seconds = read_signed(at + strlen("boottime"), &end);
    return seconds * kSecond + read_signed(end);
}

// The answer to the process that asked last, as the pid namespace below.
constinit int64_t boottime_offset = 0;
constinit int32_t offset_asked_by = 0;

int64_t own_boottime_offset() {
    const int32_t self = getpid();
    if (__atomic_load_n(&offset_asked_by, __ATOMIC_ACQUIRE) != self) {
        __atomic_store_n(&boottime_offset, read_boottime_offset(), __ATOMIC_RELAXED);
        __atomic_store_n(&offset_asked_by, self, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&boottime_offset, __ATOMIC_RELAXED);
}

uint64_t without_offset(uint64_t ticks) {
    const int64_t offset = own_boottime_offset();
    if (offset == 0 || ticks == 0)
        return ticks;
    const auto rate = static_cast<int64_t>(getauxval(AT_CLKTCK));
    const int64_t tick = kSecond / (rate > 0 ? rate : 100);
    const int64_t start = static_cast<int64_t>(ticks) - offset / tick - (offset % tick > 0);
    return start > 0 ? static_cast<uint64_t>(start) : 1;
}

}  // namespace

uint64_t start_time_of(int32_t pid) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_text(path, text, sizeof text))
        return 0;
    // The command's name may hold anything, blanks and brackets too: count from the last bracket.
    const char* at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? without_offset(read_number(at + 1)) : 0;
}

uint64_t read_pid_namespace() {
    char link[64];  // pid:[4026531836]
    const ssize_t length = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (length <= 5)
        return 0;
    link[length] = '\0';
    return read_number(link + 5);
}

ProcessIdentity this_process() { return {getpid(), own_pid_namespace(), start_time_of(getpid())}; }

bool is_own_pid_namespace(uint64_t space) { return space != 0 && space == own_pid_namespace(); }

bool is_running(const ProcessIdentity& process) {
    return is_own_pid_namespace(process.pid_namespace) && is_same_start(start_time_of(process.pid), process.start_time);
}

// The first thread's name, as /proc/self/comm has it: another thread has its own, and no cheaper way to ask.
void command_of_this_process(char* name, size_t size) {
    char own[16];  // as the kernel's TASK_COMM_LEN
    if (syscall(SYS_gettid) == getpid() && prctl(PR_GET_NAME, own) == 0) {
        snprintf(name, size, "%.*s", static_cast<int>(sizeof own), own);
        return;
    }
    const size_t count = read_text("/proc/self/comm", name, size);
    name[count ? count - 1 : 0] = '\0';  // it ends in a newline
}

uint64_t image_number() {
    // 16 random bytes that the kernel makes for each program that it starts.
    const auto* random = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
    uint64_t number = 0;
    if (random)
        memcpy(&number, random + 8, sizeof number);
    return number;
}

uint64_t random_number() {
    uint64_t random = 0;
    constexpr unsigned kNoWait = 1;  // GRND_NONBLOCK
    if (syscall(SYS_getrandom, &random, sizeof random, kNoWait) == static_cast<long>(sizeof random))
        return random;
    return now_realtime() * 0x9e3779b97f4a7c15u ^ image_number();
}

namespace {

// The letter of /proc/PID/stat; 0: it can't be read.
char state_of_process(int32_t pid) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_text(path, text, sizeof text))
        return 0;
    const char* at = strrchr(text, ')');
    return at && at[1] == ' ' ? at[2] : '\0';
}

}  // namespace

bool is_stopped(int32_t pid) {
    const char state = state_of_process(pid);
    return state == 'T' || state == 't';
}

bool is_runnable(int32_t pid) { return state_of_process(pid) == 'R'; }

namespace {

// Pid namespace of the process that asked last: a forked child may be in another one.
constinit uint64_t here = 0;
constinit int32_t asked_by = 0;

}  // namespace

void forget_pid_namespace() {
    __atomic_store_n(&asked_by, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&offset_asked_by, 0, __ATOMIC_RELEASE);
}

uint64_t own_pid_namespace() {
    const int32_t self = getpid();
    if (__atomic_load_n(&asked_by, __ATOMIC_ACQUIRE) != self) {
        __atomic_store_n(&here, read_pid_namespace(), __ATOMIC_RELAXED);
        __atomic_store_n(&asked_by, self, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&here, __ATOMIC_RELAXED);
}

}  // namespace cuslice::ledger
