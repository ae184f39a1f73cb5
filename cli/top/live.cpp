// SPDX-License-Identifier: Apache-2.0
#include "cli/top/live.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/text/terminal.h"
#include "cli/top/screen.h"
#include "cli/top/signals.h"
#include "cli/top/view.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::cli::top {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds

class Live {
  public:
    Live(Source& source, uint64_t interval)
        : source_(source), interval_(interval), screen_(locale_is_utf8(), terminal_has_colours()) {}
    void run();

  private:
    bool draw();
    bool read_keys();
    bool obey(Keys::Wish wish);
    bool take_signals();

    Source& source_;
    const uint64_t interval_;
    const Signals signals_;  // before the first child
    Screen screen_;
    Keys keys_;
    size_t offset_ = 0;
};

// From 20 columns on there is something to see; a frame is laid out for those in any case.
bool Live::draw() {
    Look look = screen_.look();
    look.width = std::max<size_t>(look.width, 20);
    const Lines lines = source_.draw(look);
    return screen_.draw(scrolled(lines, screen_.rows(), offset_, look), signals_.descriptor());
}

bool Live::obey(Keys::Wish wish) {
    const size_t page = std::max<size_t>(screen_.rows(), 4) - 3;
    switch (wish) {
        case Keys::Wish::none:
            return true;
        case Keys::Wish::quit:
            return false;
        case Keys::Wish::up:
            offset_ -= std::min<size_t>(offset_, 1);
            return true;
        case Keys::Wish::down:
            ++offset_;
            return true;
        case Keys::Wish::page_up:
            offset_ -= std::min(offset_, page);
            return true;
        case Keys::Wish::page_down:
            offset_ += page;
            return true;
        case Keys::Wish::top:
            offset_ = 0;
            return true;
        case Keys::Wish::bottom:
            offset_ = SIZE_MAX / 2;
            return true;
    }
    return true;
}

// False if this was the last.
bool Live::read_keys() {
    char bytes[256];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0)
        return errno == EINTR || errno == EAGAIN;
    for (ssize_t i = 0; i < count; ++i)
        if (!obey(keys_.read(bytes[i])))
            return false;
    return count != 0;
}

bool Live::take_signals() {
    while (const int signal = signals_.take()) {
        if (signal == SIGWINCH)
            continue;
        if (signal != SIGCONT) {
            screen_.leave();
            if (signal != SIGTSTP)
                source_.stop();
            Signals::let(signal);
        }
        // It goes on, after SIGTSTP or a SIGSTOP that nobody sees come.
        if (!screen_.enter())
            return false;
    }
    return true;
}

void Live::run() {
    if (!screen_.enter())
        return;
    uint64_t next = 0;
    for (bool there = true, changed = true; there;) {
        uint64_t now = kernel_clock(CLOCK_MONOTONIC);
        if (now >= next) {
            source_.look();
            next = now + interval_ * kMillisecond;
            changed = true;
        }
        if (changed)
            there = draw();
        now = kernel_clock(CLOCK_MONOTONIC);
        const uint64_t left = now < next ? (next - now + kMillisecond - 1) / kMillisecond : 0;
        std::vector<pollfd> ready = {{signals_.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        source_.add_descriptors(ready);
        ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left, source_.patience())));
        if (source_.take())
            next = 0;
        changed = ready[0].revents != 0 || ready[1].revents != 0;
        if (ready[0].revents != 0)
            there = there && take_signals();
        if (ready[1].revents != 0)
            there = there && read_keys();
    }
    screen_.leave();
    source_.stop();
}

}  // namespace

Keys::Wish Keys::read(char byte) {
    if (sequence_.empty() && byte != '\x1b') {
        switch (byte) {
            case 'q':
            case 'Q':
                return Wish::quit;
            case 'k':
                return Wish::up;
            case 'j':
                return Wish::down;
            case ' ':
                return Wish::page_down;
            case 'g':
                return Wish::top;
            case 'G':
                return Wish::bottom;
            default:
                return Wish::none;
        }
    }
    // An escape that begins nothing: what comes behind it is a key of its own.
    if (sequence_ == "\x1b" && byte != '[' && byte != 'O') {
        sequence_.clear();
        return read(byte);
    }
    sequence_ += byte;
    const bool ends = sequence_.size() > 2 && byte >= '@' && byte <= '~';
    if (!ends && sequence_.size() < 16)
        return Wish::none;
    const std::string whole = sequence_.substr(std::min<size_t>(sequence_.size(), 2));
    sequence_.clear();
    constexpr struct {
        std::string_view sequence;
        Wish wish;
    } kSequences[] = {{"A", Wish::up},  {"B", Wish::down}, {"5~", Wish::page_up}, {"6~", Wish::page_down},
                      {"H", Wish::top}, {"1~", Wish::top}, {"F", Wish::bottom},   {"4~", Wish::bottom}};
    for (const auto& known : kSequences)
        if (whole == known.sequence)
            return known.wish;
    return Wish::none;
}

void show_live(Source& source, uint64_t interval) { Live(source, interval).run(); }

}  // namespace cuslice::cli::top
