// SPDX-License-Identifier: Apache-2.0
#include "shim/long_wait.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "policy/base/mutex.h"
#include "shim/log.h"
#include "virtual_gpu/driver/libdl.h"

namespace cuslice {

namespace {

// Where this library lies. (The loader knows too, but has a lock of its own.)
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char _end[];

constexpr uint64_t kLong = 5000;  // milliseconds
constexpr unsigned kMaxLines = 16;
constinit std::atomic<unsigned> lines{0};

using CpuClock = int (*)(unsigned long thread, clockid_t* clock);
constinit std::atomic<CpuClock> cpu_clock{nullptr};

// "libcuslice.so+0x1a2b", which addr2line understands.
void append_place(LogLine& line, const void* place) {
    auto address = reinterpret_cast<uintptr_t>(place);
    const auto first = reinterpret_cast<uintptr_t>(__ehdr_start);
    const bool inside = address >= first && address < reinterpret_cast<uintptr_t>(_end);
    if (inside)
        address -= first;
    line.append(inside ? "libcuslice.so+0x" : "0x");
    int shift = 60;
    while (shift > 0 && address >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        line.append("0123456789abcdef"[address >> shift & 15]);
}

// The kernel's number of a thread that pthread_self() calls so; 0 if it can't be told. The number of a thread's clock
// is made of it (sched.h has no other question for that in older C libraries).
unsigned thread_number(uintptr_t thread) {
    const CpuClock ask = cpu_clock.load(std::memory_order_acquire);
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    unsigned char there = 0;
    // Not that of a thread which has ended with the lock.
    if (!ask || mincore(reinterpret_cast<void*>(thread / page * page), page, &there) != 0)
        return 0;
    clockid_t clock = 0;
    return ask(thread, &clock) == 0 ? ~static_cast<unsigned>(clock >> 3) : 0;
}

const char* name_of(LockRank rank) {
    switch (rank) {
        case LockRank::contexts:
            return "of contexts";
        case LockRank::physical_memory:
            return "of physical memory";
        case LockRank::graph_needs:
            return "of graphs' needs";
        case LockRank::visits:
            return "of visits to contexts";
        case LockRank::captures:
            return "of captures";
        case LockRank::fences:
            return "of fences";
        case LockRank::ipc_blocks:
            return "of IPC blocks";
        case LockRank::driver_footprint:
            return "of a GPU's own partition";
        default:
            return "at";
    }
}

void tell(const LongWait& wait) {
    if (lines.fetch_add(1, std::memory_order_relaxed) >= kMaxLines)
        return;
    const int saved_errno = errno;
    LogLine line;
    line.append("thread ", syscall(SYS_gettid));
    line.append(" has waited ", wait.milliseconds / 1000, " s for the lock ");
    line.append(name_of(wait.mutex->rank()), ' ');
    append_place(line, wait.mutex);
    append_place(line.append(", in code at "), wait.waiting_at);
    if (const unsigned holder = thread_number(wait.holder))
        line.append("; thread ", holder, " has it, for all or part of that time");
    else
        line.append("; a thread that can't be told has it");
    log_line(LogLevel::debug, line);
    errno = saved_errno;
}

}  // namespace

void tell_long_waits() {
    // pthread_getcpuclockid is in libpthread before glibc 2.34. Looked up here and not when it is needed, as that
    // takes a lock.
    cpu_clock.store(reinterpret_cast<CpuClock>(Libdl::dlsym(RTLD_DEFAULT, "pthread_getcpuclockid")),
                    std::memory_order_release);
    watch_long_waits(tell, kLong);
}

}  // namespace cuslice
