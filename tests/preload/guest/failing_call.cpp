// SPDX-License-Identifier: Apache-2.0
// Stands before the C library and has one of the calls fail that cuslice's library or launcher makes. The file of
// FAILING_CALL says which one, and in it they are counted: see failing_call.h. Others' calls aren't counted.
#include "tests/preload/guest/failing_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#define CUSLICE_STANDS_BEFORE __attribute__((visibility("default")))
// In the function that the library has called.
#define CUSLICE_FAILS(name, error) fails(__builtin_return_address(0), name, error)

namespace {

using cuslice::tests::CallsOf;
using cuslice::tests::FailingCall;

// The system call itself: the C library's own functions are what stands here.
long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
#else
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = d;
    register long x4 asm("x4") = e;
    register long x5 asm("x5") = f;
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

long of(const void* pointer) { return reinterpret_cast<long>(pointer); }

long with_errno(long result) {
    if (result >= 0 || result < -4095)
        return result;
    errno = static_cast<int>(-result);
    return -1;
}

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Where the code lies whose calls are counted.
struct Range {
    uintptr_t base = 0, begin = 0, end = 0;
};

FailingCall* the_plan;
Range the_code;

int find_code(dl_phdr_info* object, size_t, void* program) {
    const bool is_launcher = object->dlpi_name[0] == '\0' && ends_with(static_cast<const char*>(program), "/cuslice");
    const bool is_redirect = ends_with(object->dlpi_name, "/libcuslice-redirect.so");
    const bool is_wanted = the_plan->of == CallsOf::launcher   ? is_launcher
                           : the_plan->of == CallsOf::redirect ? is_redirect
                                                               : ends_with(object->dlpi_name, "/libcuslice.so");
    if (!is_wanted)
        return 0;
    Range& range = the_code;
    range.base = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& part = object->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X))
            continue;
        range.begin = object->dlpi_addr + part.p_vaddr;
        range.end = range.begin + part.p_memsz;
    }
    return 1;
}

FailingCall* open_plan() {
    const char* const path = getenv("FAILING_CALL");
    if (!path)
        return nullptr;
    const long file = raw(SYS_openat, AT_FDCWD, of(path), O_RDWR | O_CLOEXEC);
    if (file < 0)
        return nullptr;
    const long at = raw(SYS_mmap, 0, sizeof(FailingCall), PROT_READ | PROT_WRITE, MAP_SHARED, file);
    raw(SYS_close, file);
    return at < 0 && at > -4096 ? nullptr : reinterpret_cast<FailingCall*>(at);
}

// Before any call can fail: constructors of a later library, and of the program, run after this one's.
__attribute__((constructor)) void begin() {
    the_plan = open_plan();
    char program[512] = {};
    raw(SYS_readlinkat, AT_FDCWD, of("/proc/self/exe"), of(program), sizeof program - 1);
    if (the_plan)
        dl_iterate_phdr(find_code, program);
}

// True, with errno, if this is the call that is to fail.
bool fails(const void* caller, const char* name, int error) {
    const auto at = reinterpret_cast<uintptr_t>(caller);
    if (!the_plan || at < the_code.begin || at >= the_code.end)
        return false;
    const uint64_t call = ++the_plan->calls;
    if (call <= FailingCall::kNoted)
        the_plan->places[call - 1] = at - the_code.base;
    const bool in_row = the_plan->failing != 0 && call - the_plan->failing < the_plan->in_a_row;
    if (!in_row && call != the_plan->again)
        return false;
    if (call == the_plan->failing)
        strncpy(the_plan->name, name, sizeof the_plan->name - 1);
    errno = the_plan->error ? the_plan->error : error;
    return true;
}

// A failure is told by a line. Where stderr can't be written to as well, nobody can be told.
bool tells_of_failure(long file) { return file == STDERR_FILENO && the_plan && the_plan->name[0] != '\0'; }

struct SystemCall {
    long number;
    const char* name;
    int error;
};

// The library makes these by syscall(), and they can fail. A futex only ever says that it is to be looked at again.
constexpr SystemCall kSystemCalls[] = {
    {SYS_close, "close", EIO},
    {SYS_faccessat, "faccessat", EACCES},
    {SYS_fstat, "fstat", ENOMEM},
    {SYS_futex, "futex", EINTR},
    {SYS_getdents64, "getdents64", ENOENT},
    {SYS_getgroups, "getgroups", EPERM},
    {SYS_getrandom, "getrandom", ENOSYS},
    {SYS_membarrier, "membarrier", EPERM},
    {SYS_memfd_create, "memfd_create", EMFILE},
    {SYS_newfstatat, "newfstatat", EACCES},
    {SYS_pwritev2, "pwritev2", EIO},
    {SYS_read, "read", EIO},
    {SYS_readlinkat, "readlinkat", EACCES},
    {SYS_renameat2, "renameat2", EACCES},
    {SYS_tgkill, "tgkill", EPERM},
    {SYS_write, "write", ENOSPC},
};

const SystemCall* system_call(long number) {
    for (const SystemCall& call : kSystemCalls)
        if (call.number == number)
            return &call;
    return nullptr;
}

// Some file systems have no locks; the other commands want a descriptor.
int error_of_fcntl(int command) {
    const bool locks = command == F_OFD_SETLK || command == F_OFD_GETLK || command == F_SETLK || command == F_GETLK;
    return locks ? ENOLCK : EMFILE;
}

// A kernel always wakes.
bool is_wake(long number, long operation) {
    const long what = operation & FUTEX_CMD_MASK;
    return number == SYS_futex && what != FUTEX_WAIT && what != FUTEX_WAIT_BITSET;
}

}  // namespace

extern "C" {

CUSLICE_STANDS_BEFORE int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    if (CUSLICE_FAILS("open", EMFILE))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_openat, AT_FDCWD, of(path), flags, mode)));
}

CUSLICE_STANDS_BEFORE int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    if (CUSLICE_FAILS("openat", EMFILE))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_openat, folder, of(path), flags, mode)));
}

CUSLICE_STANDS_BEFORE int access(const char* path, int mode) noexcept {
    if (CUSLICE_FAILS("access", EACCES))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_faccessat, AT_FDCWD, of(path), mode)));
}

CUSLICE_STANDS_BEFORE int close(int file) {
    const bool failed = CUSLICE_FAILS("close", EIO);
    const int result = static_cast<int>(with_errno(raw(SYS_close, file)));  // closed all the same
    if (!failed)
        return result;
    errno = EIO;
    return -1;
}

CUSLICE_STANDS_BEFORE int execve(const char* path, char* const words[], char* const environment[]) noexcept {
    if (CUSLICE_FAILS("execve", ENOMEM))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_execve, of(path), of(words), of(environment))));
}

CUSLICE_STANDS_BEFORE int fchmod(int file, mode_t mode) noexcept {
    if (CUSLICE_FAILS("fchmod", EPERM))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_fchmod, file, mode)));
}

CUSLICE_STANDS_BEFORE int fcntl(int file, int command, ...) {
    va_list more;
    va_start(more, command);
    void* const argument = va_arg(more, void*);
    va_end(more);
    if (!tells_of_failure(file) && CUSLICE_FAILS("fcntl", error_of_fcntl(command)))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_fcntl, file, command, of(argument))));
}

CUSLICE_STANDS_BEFORE int fstatfs(int file, struct statfs* into) noexcept {
    if (CUSLICE_FAILS("fstatfs", ENOSYS))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_fstatfs, file, of(into))));
}

CUSLICE_STANDS_BEFORE int ftruncate(int file, off_t bytes) noexcept {
    if (CUSLICE_FAILS("ftruncate", ENOSPC))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_ftruncate, file, bytes)));
}

CUSLICE_STANDS_BEFORE int link(const char* from, const char* to) noexcept {
    if (CUSLICE_FAILS("link", EPERM))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_linkat, AT_FDCWD, of(from), AT_FDCWD, of(to), 0)));
}

CUSLICE_STANDS_BEFORE off_t lseek(int file, off_t by, int from) noexcept {
    if (CUSLICE_FAILS("lseek", ESPIPE))
        return -1;
    return with_errno(raw(SYS_lseek, file, by, from));
}

CUSLICE_STANDS_BEFORE int madvise(void* at, size_t bytes, int advice) noexcept {
    if (CUSLICE_FAILS("madvise", EINVAL))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_madvise, of(at), static_cast<long>(bytes), advice)));
}

CUSLICE_STANDS_BEFORE int mkdir(const char* path, mode_t mode) noexcept {
    if (CUSLICE_FAILS("mkdir", ENOSPC))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_mkdirat, AT_FDCWD, of(path), mode)));
}

CUSLICE_STANDS_BEFORE void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
    if (CUSLICE_FAILS("mmap", ENOMEM))
        return MAP_FAILED;
    return reinterpret_cast<void*>(
        with_errno(raw(SYS_mmap, of(at), static_cast<long>(bytes), protection, flags, file, offset)));
}

CUSLICE_STANDS_BEFORE int mprotect(void* at, size_t bytes, int protection) noexcept {
    if (CUSLICE_FAILS("mprotect", EACCES))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_mprotect, of(at), static_cast<long>(bytes), protection)));
}

CUSLICE_STANDS_BEFORE void* mremap(void* at, size_t bytes, size_t now, int flags, ...) noexcept {
    va_list more;
    va_start(more, flags);
    void* const to = va_arg(more, void*);
    va_end(more);
    if (CUSLICE_FAILS("mremap", ENOMEM))
        return MAP_FAILED;
    return reinterpret_cast<void*>(
        with_errno(raw(SYS_mremap, of(at), static_cast<long>(bytes), static_cast<long>(now), flags, of(to))));
}

CUSLICE_STANDS_BEFORE int munmap(void* at, size_t bytes) noexcept {
    if (CUSLICE_FAILS("munmap", ENOMEM))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_munmap, of(at), static_cast<long>(bytes))));
}

CUSLICE_STANDS_BEFORE int pipe2(int* ends, int flags) noexcept {
    if (CUSLICE_FAILS("pipe2", EMFILE))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_pipe2, of(ends), flags)));
}

CUSLICE_STANDS_BEFORE int posix_fallocate(int file, off_t offset, off_t bytes) {
    if (CUSLICE_FAILS("posix_fallocate", ENOSPC))
        return errno;
    return static_cast<int>(-raw(SYS_fallocate, file, 0, offset, bytes));
}

CUSLICE_STANDS_BEFORE ssize_t pread(int file, void* into, size_t bytes, off_t offset) {
    if (CUSLICE_FAILS("pread", EIO))
        return -1;
    return with_errno(raw(SYS_pread64, file, of(into), static_cast<long>(bytes), offset));
}

CUSLICE_STANDS_BEFORE ssize_t pwrite(int file, const void* from, size_t bytes, off_t offset) {
    if (CUSLICE_FAILS("pwrite", ENOSPC))
        return -1;
    return with_errno(raw(SYS_pwrite64, file, of(from), static_cast<long>(bytes), offset));
}

CUSLICE_STANDS_BEFORE ssize_t read(int file, void* into, size_t bytes) {
    if (CUSLICE_FAILS("read", EIO))
        return -1;
    return with_errno(raw(SYS_read, file, of(into), static_cast<long>(bytes)));
}

CUSLICE_STANDS_BEFORE ssize_t readlink(const char* path, char* into, size_t bytes) noexcept {
    if (CUSLICE_FAILS("readlink", EACCES))
        return -1;
    return with_errno(raw(SYS_readlinkat, AT_FDCWD, of(path), of(into), static_cast<long>(bytes)));
}

CUSLICE_STANDS_BEFORE ssize_t readlinkat(int folder, const char* path, char* into, size_t bytes) noexcept {
    if (CUSLICE_FAILS("readlinkat", EACCES))
        return -1;
    return with_errno(raw(SYS_readlinkat, folder, of(path), of(into), static_cast<long>(bytes)));
}

CUSLICE_STANDS_BEFORE int rename(const char* from, const char* to) noexcept {
    if (CUSLICE_FAILS("rename", EACCES))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_renameat2, AT_FDCWD, of(from), AT_FDCWD, of(to), 0)));
}

CUSLICE_STANDS_BEFORE int unlink(const char* path) noexcept {
    if (CUSLICE_FAILS("unlink", EACCES))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_unlinkat, AT_FDCWD, of(path), 0)));
}

CUSLICE_STANDS_BEFORE int unlinkat(int folder, const char* path, int flags) noexcept {
    if (CUSLICE_FAILS("unlinkat", EACCES))
        return -1;
    return static_cast<int>(with_errno(raw(SYS_unlinkat, folder, of(path), flags)));
}

CUSLICE_STANDS_BEFORE ssize_t write(int file, const void* from, size_t bytes) {
    if (!tells_of_failure(file) && CUSLICE_FAILS("write", ENOSPC))
        return -1;
    return with_errno(raw(SYS_write, file, of(from), static_cast<long>(bytes)));
}

CUSLICE_STANDS_BEFORE ssize_t writev(int file, const iovec* parts, int count) {
    if (!tells_of_failure(file) && CUSLICE_FAILS("writev", ENOSPC))
        return -1;
    return with_errno(raw(SYS_writev, file, of(parts), count));
}

CUSLICE_STANDS_BEFORE long syscall(long number, ...) noexcept {
    va_list more;
    va_start(more, number);
    long words[6];
    for (long& word : words)
        word = va_arg(more, long);
    va_end(more);
    const SystemCall* const call = system_call(number);
    const bool may_fail = call && !is_wake(number, words[1]) && !tells_of_failure(words[0]);
    if (may_fail && CUSLICE_FAILS(call->name, call->error))
        return -1;
    return with_errno(raw(number, words[0], words[1], words[2], words[3], words[4], words[5]));
}

}  // extern "C"
