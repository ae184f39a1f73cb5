// SPDX-License-Identifier: Apache-2.0
// The terminal while `cuslice top` draws on it: its second screen, without echo and line editing. What was there before
// comes back on every way out: leave(), the end of a Screen, and a signal that a crash brings. Only SIGKILL leaves it.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>

#include "cli/top/frame.h"

namespace cuslice::cli::top {

/// One at a time in a process.
class Screen {
  public:
    /// On the terminal of stdin and stdout. Nothing is changed before enter().
    Screen(bool utf8, bool colours);
    ~Screen();
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    /// Takes the terminal, also once more after somebody else had it. A process in the background is stopped by the
    /// kernel here until it is in the foreground. False if there is no terminal any more.
    bool enter();
    /// Gives it back as it was. Waits for a terminal that doesn't read for a second at most.
    void leave();

    /// How wide it is now, and in what characters it can be drawn on.
    Look look() const;
    size_t rows() const;
    /// Draws from the first row on, and empties the rows below. False if the terminal is gone. Gives up, with true, as
    /// soon as `interrupted` can be read: a terminal that doesn't read keeps nobody from ending.
    bool draw(const Lines& lines, int interrupted);

  private:
    bool write(std::string_view text, int interrupted, int patience) const;

    const bool utf8_, colours_;
    int output_;  // non-blocking, and not shared with whoever else writes to the terminal
};

/// True if stdin and stdout are a terminal on which a frame can be drawn again and again.
bool is_terminal();

}  // namespace cuslice::cli::top
