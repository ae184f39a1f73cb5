// SPDX-License-Identifier: Apache-2.0
#include "tests/stepped_child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace cuslice::tests {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
constexpr uint64_t kCallBytes = 2;         // of the instruction `syscall`

// A descriptor of /proc, of which there are as many as this machine has processes.
bool is_of_proc(pid_t pid, uint64_t descriptor) {
    std::error_code gone;
    const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
    return std::filesystem::read_symlink(link, gone).string().starts_with("/proc/");
}

// Calls of which nobody else can notice anything.
bool only_looks(pid_t pid, const user_regs_struct& call) {
    switch (call.orig_rax) {
        case SYS_read:
        case SYS_pread64:
        case SYS_lseek:
        case SYS_stat:
        case SYS_fstat:
        case SYS_newfstatat:
        case SYS_statx:
        case SYS_access:
        case SYS_readlink:
        case SYS_readlinkat:
        case SYS_getdents64:
        case SYS_getpid:
        case SYS_gettid:
        case SYS_getuid:
        case SYS_geteuid:
        case SYS_clock_gettime:
        case SYS_brk:
        case SYS_madvise:
        case SYS_mprotect:
        case SYS_rt_sigprocmask:
        case SYS_rt_sigaction:
            return true;
        case SYS_open:
            return (call.rsi & (O_CREAT | O_TRUNC)) == 0;
        case SYS_openat:
            return (call.rdx & (O_CREAT | O_TRUNC)) == 0;
        case SYS_close:
            return is_of_proc(pid, call.rdi);
        default:
            return false;
    }
}

uint64_t page_of(uint64_t address) { return address / kPage * kPage; }

// A signal of a test's own would do as well; this one stops a process that nobody traces.
constexpr int kFromHere = SIGSTOP;

}  // namespace

void SteppedChild::from_here() { raise(kFromHere); }

SteppedChild::SteppedChild(const std::function<void()>& work) {
    pid_ = fork();
    if (pid_ == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGSTOP);
        work();
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status))
        std::abort();
    ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC);
}

SteppedChild::~SteppedChild() { kill(); }

void SteppedChild::kill() {
    if (ended_)
        return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    // A stop that was on its way may come first.
    while (waitpid(pid_, &status, 0) == pid_ && !WIFEXITED(status) && !WIFSIGNALED(status)) {
    }
    note_end(status);
}

void SteppedChild::note_end(int status) {
    ended_ = true;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool SteppedChild::step() {
    while (!ended_)
        if (next_stop())
            return true;
    return false;
}

bool SteppedChild::go_to(unsigned number) {
    while (steps_ < number)
        if (!step())
            return false;
    return true;
}

void SteppedChild::finish() {
    stepping_ = false;
    if (!ended_ && at_ == At::entry)
        next_stop();
    if (ended_)
        return;
    protect(PROT_READ | PROT_WRITE);
    shared_.clear();
    at_ = At::exit;
    step();
}

// True if the child stands before something that others can see.
bool SteppedChild::next_stop() {
    if (at_ == At::store)
        carry_out_store();
    ptrace(PTRACE_SYSCALL, pid_, nullptr, signal_);
    signal_ = 0;
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_)
        std::abort();
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
        note_end(status);
        return false;
    }
    return handle(status) && counting_ && stepping_ && ++steps_ > 0;
}

bool SteppedChild::handle(int status) {
    const int signal = WSTOPSIG(status);
    if (signal == kCallStop) {
        if (at_ == At::entry) {
            leave_call();
            return false;
        }
        return enter_call();
    }
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
        shared_.clear();
        return false;
    }
    if (signal == SIGSEGV && fault())
        return true;
    if (signal == kFromHere && !counting_)
        counting_ = true;
    else
        signal_ = signal;
    return false;
}

bool SteppedChild::enter_call() {
    at_ = At::entry;
    ptrace(PTRACE_GETREGS, pid_, nullptr, &entered_);
    call_ = entered_.rip - kCallBytes;
    const bool maps = entered_.orig_rax == SYS_mmap && (entered_.rdx & PROT_WRITE) != 0 &&
                      (entered_.r10 & MAP_SHARED) != 0 && (entered_.r10 & MAP_ANONYMOUS) == 0;
    maps_file_ = maps && stepping_;
    if (maps_file_) {
        user_regs_struct changed = entered_;
        changed.rdx = PROT_READ;
        ptrace(PTRACE_SETREGS, pid_, nullptr, &changed);
    }
    about_to_ = "system call " + std::to_string(entered_.orig_rax);
    return !only_looks(pid_, entered_);
}

void SteppedChild::leave_call() {
    at_ = At::exit;
    user_regs_struct left;
    ptrace(PTRACE_GETREGS, pid_, nullptr, &left);
    const auto result = static_cast<int64_t>(left.rax);
    if (maps_file_) {
        left.rdx = entered_.rdx;
        ptrace(PTRACE_SETREGS, pid_, nullptr, &left);
        if (result > 0)
            shared_.push_back({left.rax, left.rax + (entered_.rsi + kPage - 1) / kPage * kPage});
    }
    if (entered_.orig_rax == SYS_munmap && result == 0)
        std::erase_if(shared_, [&](const Range& range) { return range.from == entered_.rdi; });
}

// True if the child was about to store into a file that others may see.
bool SteppedChild::fault() {
    siginfo_t info;
    ptrace(PTRACE_GETSIGINFO, pid_, nullptr, &info);
    address_ = reinterpret_cast<uint64_t>(info.si_addr);
    const bool ours =
        std::ranges::any_of(shared_, [&](const Range& range) { return address_ >= range.from && address_ < range.to; });
    if (!ours)
        return false;
    at_ = At::store;
    char text[40];
    std::snprintf(text, sizeof text, "store to 0x%llx", static_cast<unsigned long long>(address_));
    about_to_ = text;
    return true;
}

// One store, where an instruction stores again and again.
void SteppedChild::carry_out_store() {
    at_ = At::exit;
    // It may reach into the next page.
    const uint64_t page = page_of(address_);
    const bool more = std::ranges::any_of(
        shared_, [&](const Range& range) { return page >= range.from && page + 2 * kPage <= range.to; });
    const uint64_t bytes = more ? 2 * kPage : kPage;
    inject(SYS_mprotect, page, bytes, PROT_READ | PROT_WRITE);
    int status = 0;
    ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr);
    waitpid(pid_, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        std::abort();
    inject(SYS_mprotect, page, bytes, PROT_READ);
}

void SteppedChild::protect(int protection) {
    for (const Range& range : shared_)
        inject(SYS_mprotect, range.from, range.to - range.from, static_cast<uint64_t>(protection));
}

// The child makes this call where it stands, and knows nothing of it.
void SteppedChild::inject(uint64_t number, uint64_t a, uint64_t b, uint64_t c) {
    user_regs_struct before;
    ptrace(PTRACE_GETREGS, pid_, nullptr, &before);
    user_regs_struct calling = before;
    calling.rip = call_;
    calling.rax = number;
    calling.orig_rax = ~0ull;
    calling.rdi = a;
    calling.rsi = b;
    calling.rdx = c;
    ptrace(PTRACE_SETREGS, pid_, nullptr, &calling);
    ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr);
    int status = 0;
    waitpid(pid_, &status, 0);
    user_regs_struct after;
    ptrace(PTRACE_GETREGS, pid_, nullptr, &after);
    if (after.rip != call_ + kCallBytes || after.rax != 0)
        std::abort();
    before.orig_rax = ~0ull;
    ptrace(PTRACE_SETREGS, pid_, nullptr, &before);
}

}  // namespace cuslice::tests
