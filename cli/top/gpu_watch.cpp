// SPDX-License-Identifier: Apache-2.0
#include "cli/top/gpu_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "cli/gpus/gpu_answer.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::cli::top {
namespace {

// As a waiting launcher asks: it takes longer than a look at the ledgers.
constexpr uint64_t kPause = 2'000'000'000;  // nanoseconds

uint64_t now() { return kernel_clock(CLOCK_MONOTONIC); }

// The child: in a group of its own, which keys signal nothing and which can be killed whole, and silent, as the
// terminal is not its own. Doesn't return.
void answer(const std::function<Gpus()>& ask, int to) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard)
        ::dup2(null, standard);
    const std::string text = write_answer(ask());
    for (size_t at = 0; at < text.size();) {
        const ssize_t count = ::write(to, text.data() + at, text.size() - at);
        if (count < 0 && errno != EINTR)
            break;
        at += count > 0 ? static_cast<size_t>(count) : 0;
    }
    ::_exit(0);
}

}  // namespace

void GpuWatch::stop() {
    if (child_ > 0)
        ::kill(-child_, SIGKILL);
    finish();
}

void GpuWatch::finish() {
    if (answer_ >= 0)
        ::close(answer_);
    answer_ = -1;
    if (child_ <= 0)
        return;
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
    child_ = 0;
}

void GpuWatch::ask() {
    if (answer_ >= 0 || (answered_ != 0 && now() - answered_ < kPause))
        return;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return;
    child_ = ::fork();
    if (child_ == 0)
        answer(ask_, ends[1]);
    ::close(ends[1]);
    answer_ = ends[0];
    text_.clear();
    if (child_ > 0)
        ::setpgid(child_, child_);  // whoever of the two comes first
}

bool GpuWatch::take() {
    char buffer[4096];
    const ssize_t count = ::read(answer_, buffer, sizeof buffer);
    if (count > 0)
        text_.append(buffer, static_cast<size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR))
        return false;
    finish();
    latest_ = parse_answer(text_);
    answered_ = now();
    return true;
}

}  // namespace cuslice::cli::top
