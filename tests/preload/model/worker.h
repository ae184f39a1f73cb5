// SPDX-License-Identifier: Apache-2.0
// One program of the model: a guest under the real LD_PRELOAD that does what it is told, a line at a time, and that can
// be stopped, killed, and measured while it answers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/preload/guest.h"

namespace cuslice::tests::model {

/// An error that the model has found. Ends the round.
struct Finding : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Answer {
    std::string text;
    bool gone = false;        // the program ended instead
    uint64_t blocked_ms = 0;  // how long it was asleep over it: see Worker::ask
};

class Worker {
  public:
    Worker(const Words& words, const Words& environment);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void send(const std::string& line);
    /// Waits for the next line, and has a look now and then meanwhile; a Finding after kHang seconds.
    Answer receive(const std::function<void()>& look = {});
    /// Both. The time blocked is the wall clock's less what the threads of the program, of the model and of the
    /// neighbours have run and have waited for a processor, and no more than the program was found asleep: so a machine
    /// that is busy with something else adds nothing to it. A neighbour that waits for a processor may have what this
    /// one waits for.
    Answer ask(const std::string& line, const std::vector<pid_t>& neighbours = {});

    /// The program's pid in its own namespace, by which the books know it, and its pid in ours.
    int own_pid() const { return own_pid_; }
    pid_t host_pid() const { return host_pid_; }
    /// Asks for both anew: after a fork, and at the beginning.
    void look_who();

    void stop();
    void go_on();
    bool is_stopped() const { return stopped_; }
    /// State and system call of each of its threads, for people to read.
    std::string state() const;
    /// SIGKILL, and waits until nothing of it is left.
    void kill();
    /// Closes its input and waits for its end: the exit code, or 128 and the signal.
    int finish();
    const std::string& err();

  private:
    void drain();
    int reap();

    pid_t child_ = -1, host_pid_ = -1;
    int in_ = -1, out_ = -1, error_ = -1, own_pid_ = -1;
    bool stopped_ = false;
    std::string pending_, err_;
};

/// How long the threads of a process have run and have waited for a processor since this was made, as far as they were
/// looked at: one that ends between two looks counts as at the first. Nothing where the kernel doesn't say.
class Busy {
  public:
    explicit Busy(pid_t pid);
    void look();
    uint64_t nanoseconds() const;
    /// In how much of the time all of them slept, each as from the look before to the one that found them so. To wait
    /// for a disk is not to sleep.
    uint64_t asleep_nanoseconds() const { return asleep_; }

  private:
    struct Thread {
        uint64_t at_first = 0, now = 0;
    };
    pid_t pid_;
    uint64_t looked_ = 0, asleep_ = 0;  // nanoseconds: when, and how long
    std::map<pid_t, Thread> threads_;
};

}  // namespace cuslice::tests::model
