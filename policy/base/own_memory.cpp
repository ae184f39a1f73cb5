// SPDX-License-Identifier: Apache-2.0
#include "policy/base/own_memory.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cuslice {

namespace {

constexpr size_t kPage = 4096;

// Reads memory of this process through a pipe: a write fails where nothing is mapped. No call here is a cancellation
// point.
size_t read_by_pipe(uintptr_t memory, void* into, size_t size) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return 0;
    size_t done = 0;
    while (done < size) {
        // A write that reaches into a page that isn't mapped may write nothing of the pages before.
        const size_t part = std::min(size - done, kPage - (memory + done) % kPage);
        const long written = syscall(SYS_write, ends[1], memory + done, part);
        if (written <= 0)
            break;
        const long got = syscall(SYS_read, ends[0], static_cast<char*>(into) + done, written);
        if (got > 0)
            done += static_cast<size_t>(got);
        if (got < static_cast<long>(part))
            break;
    }
    syscall(SYS_close, ends[0]);
    syscall(SYS_close, ends[1]);
    return done;
}

size_t read_memory(uintptr_t memory, void* into, size_t size) {
    const iovec here{into, size}, there{reinterpret_cast<void*>(memory), size};
    const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (got > 0)
        return static_cast<size_t>(got);
    // Sandboxes refuse it, and emulators don't know it.
    const bool refused = got < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES);
    return refused ? read_by_pipe(memory, into, size) : 0;
}

}  // namespace

size_t read_own_memory(uintptr_t memory, void* into, size_t size) {
    const int saved_errno = errno;
    const size_t got = read_memory(memory, into, size);
    errno = saved_errno;
    return got;
}

}  // namespace cuslice
