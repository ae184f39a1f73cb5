// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "tests/soon.h"

namespace cuslice::tests {
namespace {

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts)
        pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// The session's leader: starts the program in the foreground, reports what becomes of it, and obeys.
[[noreturn]] void be_shell(int slave, int reports, int orders, const std::vector<char*>& arguments,
                           const std::vector<char*>& lines) {
    ::setsid();
    ::ioctl(slave, TIOCSCTTY, 0);
    ::signal(SIGTTOU, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);  // the terminal's end is the program's to see
    const pid_t program = ::fork();
    if (program == 0) {
        ::setpgid(0, 0);
        ::tcsetpgrp(slave, ::getpid());
        ::signal(SIGTTOU, SIG_DFL);
        ::signal(SIGHUP, SIG_DFL);
        for (int standard = 0; standard < 3; ++standard)
            ::dup2(slave, standard);
        ::execve(arguments[0], arguments.data(), lines.data());
        ::_exit(125);
    }
    ::setpgid(program, program);
    if (::write(reports, &program, sizeof program) < 0)
        ::_exit(1);
    for (;;) {
        int status = 0;
        while (::waitpid(program, &status, WUNTRACED) < 0 && errno == EINTR) {
        }
        ::tcsetpgrp(slave, ::getpgrp());
        if (::write(reports, &status, sizeof status) < 0 || !WIFSTOPPED(status))
            ::_exit(0);
        char order = 0;
        if (::read(orders, &order, 1) != 1)
            break;
        if (order == 'f')
            ::tcsetpgrp(slave, program);
        ::kill(-program, SIGCONT);
    }
    ::kill(-program, SIGKILL);
    ::_exit(1);
}

}  // namespace

Terminal::Terminal(const std::vector<std::string>& words, const std::vector<std::string>& environment, unsigned rows,
                   unsigned columns) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0)
        throw std::runtime_error("no terminal");
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    resize(rows, columns);
    ::tcgetattr(slave_, &before_);
    int reports[2], orders[2];
    if (::pipe2(reports, O_CLOEXEC) != 0 || ::pipe2(orders, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    const auto arguments = pointers_of(words), lines = pointers_of(environment);
    shell_ = ::fork();
    if (shell_ == 0) {
        ::close(master_);
        ::close(orders[1]);
        be_shell(slave_, reports[1], orders[0], arguments, lines);
    }
    ::close(reports[1]);
    ::close(orders[0]);
    reports_ = reports[0];
    orders_ = orders[1];
    if (::read(reports_, &pid_, sizeof pid_) != sizeof pid_)
        throw std::runtime_error("no program");
}

Terminal::~Terminal() {
    if (pid_ > 0)
        ::kill(pid_, SIGKILL);
    ::close(orders_);
    ::waitpid(shell_, nullptr, 0);
    ::close(reports_);
    close();
}

void Terminal::close() {
    if (slave_ >= 0)
        ::close(slave_);
    if (master_ >= 0)
        ::close(master_);
    slave_ = master_ = -1;
}

bool Terminal::read_some(int milliseconds) {
    pollfd ready{master_, POLLIN, 0};
    if (::poll(&ready, 1, milliseconds) <= 0)
        return false;
    char buffer[4096];
    const ssize_t count = ::read(master_, buffer, sizeof buffer);
    if (count > 0)
        printed_.append(buffer, static_cast<size_t>(count));
    return count > 0;
}

bool Terminal::shows(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + kLongEnough;
    for (;;) {
        const size_t at = printed_.find(text, seen_);
        if (at != printed_.npos) {
            seen_ = at + text.size();
            return true;
        }
        pollfd ended{reports_, POLLIN, 0};
        if (!read_some(50) && (::poll(&ended, 1, 0) > 0 || std::chrono::steady_clock::now() > end))
            return false;
    }
}

void Terminal::type(const std::string& keys) const {
    if (::write(master_, keys.data(), keys.size()) < 0)
        throw std::runtime_error("nothing can be typed");
}

void Terminal::resize(unsigned rows, unsigned columns) const {
    const winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
}

int Terminal::status() {
    const auto end = std::chrono::steady_clock::now() + kLongEnough;
    pollfd both[] = {{reports_, POLLIN, 0}, {master_, POLLIN, 0}};
    while (std::chrono::steady_clock::now() < end && both[0].revents == 0) {
        ::poll(both, 2, 1000);
        if (both[1].revents != 0)
            read_some(0);
    }
    while (master_ >= 0 && read_some(0)) {
    }
    int status = -1;
    return both[0].revents != 0 && ::read(reports_, &status, sizeof status) == sizeof status ? status : -1;
}

void Terminal::foreground() const {
    if (::write(orders_, "f", 1) != 1)
        throw std::runtime_error("no shell");
}

void Terminal::background() const {
    if (::write(orders_, "b", 1) != 1)
        throw std::runtime_error("no shell");
}

termios Terminal::modes() const {
    termios now{};
    ::tcgetattr(slave_, &now);
    return now;
}

}  // namespace cuslice::tests
