// SPDX-License-Identifier: Apache-2.0
#include "cli/top/live.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/text/terminal.h"
#include "cli/top/help.h"
#include "cli/top/keys.h"
#include "cli/top/prompt.h"
#include "cli/top/screen.h"
#include "cli/top/signals.h"
#include "cli/top/view.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::cli::top {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds
constexpr uint64_t kEscape = 50;              // milliseconds in which the rest of an escape sequence comes

class Live {
  public:
    Live(Source& source, uint64_t interval, SetLimit set_limit)
        : source_(source),
          interval_(interval),
          set_limit_(std::move(set_limit)),
          screen_(locale_is_utf8(), terminal_has_colours()) {}
    void run();

  private:
    enum class Mode : uint8_t { frame, help, filter, limit };

    bool draw();
    Span last_row(const Look& look) const;
    bool read_keys();
    bool read_key(char byte);
    bool obey(Keys::Wish wish);
    void scroll(Keys::Wish wish);
    void begin_limit();
    void type(char byte);
    void leave_prompt();
    void escape();
    bool take_signals();
    Look look() const;

    Source& source_;
    const uint64_t interval_;
    const SetLimit set_limit_;
    const Signals signals_;  // before the first child
    Screen screen_;
    Keys keys_;
    Choice choice_;
    Mode mode_ = Mode::frame;
    Prompt prompt_;
    std::vector<Target> targets_;  // while a limit is typed: the first is meant
    Span said_;                    // until the next key
    bool look_now_ = false;        // something has been changed
    size_t offset_ = 0;
    uint64_t read_at_ = 0;  // the last key: CLOCK_MONOTONIC, nanoseconds
};

// From 20 columns on there is something to see; a frame is laid out for those in any case.
Look Live::look() const {
    Look look = screen_.look();
    look.width = std::max<size_t>(look.width, 20);
    return look;
}

Span Live::last_row(const Look& look) const {
    const std::string cursor = look.utf8 ? "▏" : "_";
    const std::string typed = shown(prompt_.text(), look) + cursor;
    switch (mode_) {
        case Mode::help:
            return {"any key goes back", Tone::faint};
        case Mode::filter:
            return {"only what has: " + typed, Tone::heading};
        case Mode::limit:
            return {(look.width < 60 ? "" : "limit of ") + targets_.front().shown + ": " + typed +
                        (targets_.size() > 1 ? "  Tab: the next" : ""),
                    Tone::heading};
        default:
            return said_.text.empty() ? keys_row(choice_, look) : Span{shown(said_.text, look), said_.tone};
    }
}

bool Live::draw() {
    const Look shape = look();
    const Lines lines = mode_ == Mode::help ? draw_help(shape) : source_.draw(shape, choice_);
    return screen_.draw(scrolled(lines, screen_.rows(), offset_, last_row(shape), shape), signals_.descriptor());
}

void Live::scroll(Keys::Wish wish) {
    const size_t page = std::max<size_t>(screen_.rows(), 4) - 3;
    if (wish == Keys::Wish::up)
        offset_ -= std::min<size_t>(offset_, 1);
    else if (wish == Keys::Wish::down)
        ++offset_;
    else if (wish == Keys::Wish::page_up)
        offset_ -= std::min(offset_, page);
    else if (wish == Keys::Wish::page_down)
        offset_ += page;
    else if (wish == Keys::Wish::top)
        offset_ = 0;
    else if (wish == Keys::Wish::bottom)
        offset_ = SIZE_MAX / 2;
}

void Live::begin_limit() {
    targets_ = source_.targets(look());
    if (targets_.empty()) {
        said_ = {"There is no job or group of yours here whose limit could be changed.", Tone::warning};
        return;
    }
    mode_ = Mode::limit;
    prompt_ = Prompt();
}

// False if this was the last.
bool Live::obey(Keys::Wish wish) {
    switch (wish) {
        case Keys::Wish::quit:
            return false;
        case Keys::Wish::help:
            mode_ = Mode::help;
            break;
        case Keys::Wish::sort:
            choice_.order =
                static_cast<Order>((static_cast<size_t>(choice_.order) + 1) % static_cast<size_t>(Order::count));
            break;
        case Keys::Wish::reverse:
            choice_.reversed = !choice_.reversed;
            break;
        case Keys::Wish::filter:
            mode_ = Mode::filter;
            prompt_ = Prompt(choice_.filter);
            break;
        case Keys::Wish::tree:
            choice_.unfolded = !choice_.unfolded;
            break;
        case Keys::Wish::limit:
            begin_limit();
            break;
        default:
            scroll(wish);
    }
    return true;
}

void Live::leave_prompt() {
    mode_ = Mode::frame;
    targets_.clear();
}

// Leaves what is open, and what is filtered.
void Live::escape() {
    if (mode_ != Mode::limit && mode_ != Mode::help)
        choice_.filter.clear();
    leave_prompt();
}

void Live::type(char byte) {
    const Prompt::State state = prompt_.read(byte);
    if (mode_ == Mode::filter)
        choice_.filter = prompt_.text();
    if (mode_ == Mode::limit && state == Prompt::State::next)
        std::rotate(targets_.begin(), targets_.begin() + 1, targets_.end());
    if (state != Prompt::State::entered)
        return;
    if (mode_ == Mode::limit && !prompt_.text().empty()) {
        said_ = set_limit_(targets_.front(), prompt_.text());
        look_now_ = true;
    }
    leave_prompt();
}

// False if this was the last.
bool Live::read_key(char byte) {
    const bool plain = !keys_.waiting() && byte != '\x1b';
    if (mode_ == Mode::filter || mode_ == Mode::limit) {
        if (plain)
            type(byte);
        else
            keys_.read(byte);  // a sequence means nothing here
        return true;
    }
    said_ = {};
    const Keys::Wish wish = keys_.read(byte);
    if (mode_ == Mode::frame)
        return obey(wish);
    if (!keys_.waiting())
        mode_ = Mode::frame;
    return true;
}

// False if this was the last.
bool Live::read_keys() {
    char bytes[256];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0)
        return errno == EINTR || errno == EAGAIN;
    read_at_ = kernel_clock(CLOCK_MONOTONIC);
    for (ssize_t i = 0; i < count; ++i)
        if (!read_key(bytes[i]))
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
        if (now >= next || std::exchange(look_now_, false)) {
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
        const uint64_t patience = keys_.waiting() ? std::min(kEscape, source_.patience()) : source_.patience();
        ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left, patience)));
        if (source_.take())
            next = 0;
        changed = ready[0].revents != 0 || ready[1].revents != 0;
        // Something else may have ended the wait: the rest of a sequence has its time all the same.
        const bool silent = kernel_clock(CLOCK_MONOTONIC) - read_at_ >= kEscape * kMillisecond;
        if (ready[1].revents == 0 && silent && keys_.pause() == Keys::Wish::escape) {
            escape();
            changed = true;
        }
        if (ready[0].revents != 0)
            there = there && take_signals();
        if (ready[1].revents != 0)
            there = there && read_keys();
    }
    screen_.leave();
    source_.stop();
}

}  // namespace

void show_live(Source& source, uint64_t interval, SetLimit set_limit) {
    Live(source, interval, std::move(set_limit)).run();
}

}  // namespace cuslice::cli::top
