// SPDX-License-Identifier: Apache-2.0
// A program in a terminal of a test's own, under something that does a shell's job control.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cuslice::tests {

class Terminal {
  public:
    Terminal(const std::vector<std::string>& words, const std::vector<std::string>& environment, unsigned rows,
             unsigned columns);
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    int pid() const { return pid_; }
    /// Waits until the program has printed `text` since the last call, and forgets all up to its end. False if it
    /// ended before.
    bool shows(const std::string& text);
    /// All that was printed so far.
    const std::string& printed() const { return printed_; }
    void type(const std::string& keys) const;
    void resize(unsigned rows, unsigned columns) const;
    /// Waits until the program stops or ends, and returns its status as waitpid does. All that it printed until then
    /// is read. Once it has stopped, the terminal is the shell's.
    int status();
    /// As a shell's `fg` and `bg`.
    void foreground() const;
    void background() const;
    /// How the terminal is set now, and how it was before the program began.
    termios modes() const;
    const termios& modes_before() const { return before_; }
    /// Nobody looks at it any more.
    void close();

  private:
    bool read_some(int milliseconds);

    int master_ = -1, slave_ = -1, reports_ = -1, orders_ = -1, shell_ = 0, pid_ = 0;
    termios before_{};
    std::string printed_;
    size_t seen_ = 0;
};

}  // namespace cuslice::tests
