// SPDX-License-Identifier: Apache-2.0
#include "policy/base/own_descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

#include "config/at_load.h"

namespace cuslice {

namespace {

constexpr size_t kAtOnce = 4096;  // PIPE_BUF: what a pipe that is ready has room for
constexpr int kLowest = 10;       // where shells begin to keep theirs
constexpr int kNoWait = 0x8;      // RWF_NOWAIT, which older headers don't know
constexpr long kHere = -1;        // pwritev2: where the file stands

class SavedErrno {
  public:
    ~SavedErrno() { errno = saved_; }

  private:
    int saved_ = errno;
};

// Holds back what the kernel sends a thread for its own write. One that comes meanwhile is taken away again, unless one
// was waiting before: signals of a kind don't add up.
class SignalsOfWrite {
  public:
    SignalsOfWrite() {
        sigemptyset(&ours_);
        for (const int signal : {SIGPIPE, SIGXFSZ, SIGTTOU})
            sigaddset(&ours_, signal);
        sigprocmask(SIG_BLOCK, &ours_, &before_);  // of this thread alone
        sigset_t waiting;
        sigpending(&waiting);
        for (const int signal : {SIGPIPE, SIGXFSZ})
            if (sigismember(&waiting, signal))
                sigdelset(&ours_, signal);
        sigdelset(&ours_, SIGTTOU);  // is not sent to who holds it back
    }
    ~SignalsOfWrite() {
        const timespec now{};
        while (failed_ && sigtimedwait(&ours_, nullptr, &now) > 0) {
        }
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    SignalsOfWrite(const SignalsOfWrite&) = delete;
    SignalsOfWrite& operator=(const SignalsOfWrite&) = delete;

    void failed(int error) { failed_ = error == EPIPE || error == EFBIG; }

  private:
    sigset_t ours_, before_;
    bool failed_ = false;
};

// The descriptor's own O_NONBLOCK is everybody's who has the file open, so it is left alone.
ssize_t write_now(int descriptor, const FileIdentity& file, const char* text, size_t bytes) {
    if (S_ISSOCK(file.mode))
        return send(descriptor, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!S_ISREG(file.mode)) {
        pollfd ready{descriptor, POLLOUT, 0};
        if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
            return 0;
        // Another writer may fill a pipe by now. Older kernels, and sandboxes, can't be asked not to wait.
        const iovec whole{const_cast<char*>(text), bytes};
        const long written = syscall(SYS_pwritev2, descriptor, &whole, 1, kHere, kHere, kNoWait);
        if (written >= 0 || errno == EAGAIN)
            return written;
    }
    return write(descriptor, text, bytes);
}

}  // namespace

CUSLICE_AT_LOAD FileIdentity identity_of(int descriptor) {
    const SavedErrno saved;
    // The C library's fstat carries a version that old ones lack.
    struct stat info {};
    if (descriptor < 0 || syscall(SYS_fstat, descriptor, &info) != 0)
        return {};
    return identity_of(info);
}

bool is_of(int descriptor, const FileIdentity& file) { return descriptor >= 0 && identity_of(descriptor) == file; }

int keep_descriptor(int descriptor) {
    if (descriptor < 0 || descriptor >= kLowest)
        return descriptor;
    const SavedErrno saved;
    const int kept = fcntl(descriptor, F_DUPFD_CLOEXEC, kLowest);
    if (kept < 0)
        return descriptor;
    close(descriptor);
    return kept;
}

int keep_descriptor(int descriptor, bool over_exec) {
    if (!over_exec)
        return keep_descriptor(descriptor);
    const SavedErrno saved;
    const int kept = fcntl(descriptor, F_DUPFD, kLowest);
    if (kept < 0)
        return fcntl(descriptor, F_SETFD, 0), descriptor;
    close(descriptor);
    return kept;
}

bool file_may_have(uint64_t bytes) {
    const SavedErrno saved;
    struct rlimit most {};
    return getrlimit(RLIMIT_FSIZE, &most) != 0 || bytes <= most.rlim_cur;
}

void write_at_once(int descriptor, const char* text, size_t bytes) {
    const SavedErrno saved;
    const FileIdentity file = identity_of(descriptor);
    if (!file.mode)
        return;
    SignalsOfWrite signals;
    while (bytes != 0) {
        const size_t piece = S_ISREG(file.mode) || bytes < kAtOnce ? bytes : kAtOnce;
        const ssize_t written = write_now(descriptor, file, text, piece);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            signals.failed(errno);
        if (written <= 0)
            return;
        text += written;
        bytes -= static_cast<size_t>(written);
    }
}

}  // namespace cuslice
