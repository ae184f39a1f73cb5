// SPDX-License-Identifier: Apache-2.0
#include "cli/top/screen.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/text/terminal.h"
#include "cli/top/canvas.h"

namespace cuslice::cli::top {
namespace {

// The second screen, no cursor, and lines that are cut off at the right edge; then the same backwards.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

// State that a signal handler may look at.
termios before;
volatile sig_atomic_t entered = 0;

constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// Ends the process as it would have ended without it, on a terminal that can be used.
void restore_and_end(int signal) {
    if (entered != 0) {
        entered = 0;
        [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, kLeave.data(), kLeave.size());
        ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
    ::raise(signal);  // its own action is back (SA_RESETHAND)
}

// Somebody else's handler, as a sanitizer's, stays.
void catch_crashes() {
    for (const int signal : kCrashes) {
        struct sigaction action {};
        if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL)
            continue;
        action.sa_handler = restore_and_end;
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
        ::sigaction(signal, &action, nullptr);
    }
}

bool set_terminal(const termios& wanted) {
    int result = 0;
    while ((result = ::tcsetattr(STDIN_FILENO, TCSANOW, &wanted)) != 0 && errno == EINTR) {
    }
    return result == 0;
}

// In the background the kernel stops us here (SIGTTOU) until we are in the foreground. There is nothing to restore
// then, so that a signal which is to end us may do so at once.
bool take_terminal(const termios& raw) {
    const bool background = ::tcgetpgrp(STDIN_FILENO) != ::getpgrp();
    sigset_t none, blocked;
    sigemptyset(&none);
    if (background)
        ::sigprocmask(SIG_SETMASK, &none, &blocked);
    const bool taken = set_terminal(raw);
    if (background)
        ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    return taken;
}

winsize size_now() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return {24, 80, 0, 0};
    return size;
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// The sequences that draw a frame from the first row on; lines below the last row are left out.
class Frame : public CharacterCanvas {
  public:
    Frame(const Look& look, size_t rows, bool colours)
        : CharacterCanvas(look.utf8), width_(look.width), rows_(rows), colours_(colours) {}

    void text(const std::string& text, Tone tone) override {
        if (columns_ == 0 && line_.empty())
            line_ = place(row_);
        line_ += coloured(text, tone, colours_);
        columns_ += columns_of(text);
    }
    void end_line() override {
        if (line_.empty())
            line_ = place(row_);
        // Not where the last column was written: the cursor is still on it.
        if (columns_ < width_)
            line_ += "\x1b[K";
        if (row_ < rows_)
            sequences_ += line_;
        ++row_;
        line_.clear();
        columns_ = 0;
    }
    bool flush() override {
        if (row_ < rows_)
            sequences_ += place(row_) + "\x1b[J";
        return true;
    }
    const std::string& sequences() const { return sequences_; }

  private:
    static std::string place(size_t row) { return "\x1b[" + std::to_string(row + 1) + ";1H"; }

    const size_t width_, rows_;
    const bool colours_;
    size_t row_ = 0, columns_ = 0;
    std::string line_, sequences_;
};

}  // namespace

Screen::Screen(bool utf8, bool colours) : utf8_(utf8), colours_(colours), output_(-1) {
    const char* const name = ::ttyname(STDOUT_FILENO);
    if (name != nullptr)
        output_ = ::open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (output_ < 0)
        output_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
}

Screen::~Screen() {
    leave();
    if (output_ >= 0)
        ::close(output_);
}

bool Screen::enter() {
    if (entered == 0 && ::tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    termios raw = before;
    // Signals of keys stay, so that Ctrl-C and Ctrl-Z are what they always are; Ctrl-S stops nothing.
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (!take_terminal(raw))
        return false;
    if (entered == 0)
        catch_crashes();
    entered = 1;
    return write(kEnter, -1, 1000);
}

void Screen::leave() {
    if (entered == 0)
        return;
    write(kLeave, -1, 1000);
    set_terminal(before);
    entered = 0;
}

Look Screen::look() const { return {size_now().ws_col, utf8_}; }

size_t Screen::rows() const { return size_now().ws_row; }

bool Screen::draw(const Lines& lines, int interrupted) {
    Frame frame(look(), rows(), colours_);
    for (const Line& line : lines)
        top::draw(clipped(line, look()), frame);
    frame.flush();
    return write(frame.sequences(), interrupted, -1);
}

bool Screen::write(std::string_view text, int interrupted, int patience) const {
    while (!text.empty()) {
        const ssize_t count = ::write(output_, text.data(), text.size());
        if (count > 0)
            text.remove_prefix(static_cast<size_t>(count));
        if (count >= 0 || errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return false;
        pollfd both[] = {{output_, POLLOUT, 0}, {interrupted, POLLIN, 0}};
        const int ready = ::poll(both, 2, patience);
        if (ready == 0 || both[1].revents != 0)
            return true;
    }
    return true;
}

bool is_terminal() {
    const std::string kind = variable("TERM");
    return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0 && !kind.empty() && kind != "dumb";
}

}  // namespace cuslice::cli::top
