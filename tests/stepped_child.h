// SPDX-License-Identifier: Apache-2.0
// A child process that stops before everything it does that another process could notice, for tests that kill it there.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuslice::tests {

/// Others see of a process its system calls, and what it stores into files that it has mapped. Killed in any
/// instruction between two of these it leaves the same behind: a test that kills it before each has killed it in each
/// instruction. Also in the program that it becomes. Traces the child (can_trace()); x86-64 alone.
class SteppedChild {
  public:
    /// Runs `work`, which stops here for the first time where it calls from_here(), and ends with 0 where it returns.
    explicit SteppedChild(const std::function<void()>& work);
    /// Kills it.
    ~SteppedChild();
    SteppedChild(const SteppedChild&) = delete;
    SteppedChild& operator=(const SteppedChild&) = delete;

    /// In the child.
    static void from_here();

    /// Goes on to the next step, and stops before it. False: the child has ended.
    bool step();
    /// Steps so often that it stands before step `number`, from 1 on. False: it has ended before.
    bool go_to(unsigned number);
    /// Goes on to the end, without a stop.
    void finish();
    /// The process is gone, with its locks, when this returns.
    void kill();

    unsigned steps() const { return steps_; }
    bool ended() const { return ended_; }
    /// The exit status, or 128 and the signal.
    int exit_code() const { return exit_code_; }
    /// Its next step: "system call 72", "store to 0x7f…".
    const std::string& about_to() const { return about_to_; }

  private:
    enum class At : uint8_t { start, entry, exit, store };
    struct Range {
        uint64_t from, to;
    };

    bool next_stop();
    bool handle(int status);
    bool enter_call();
    void leave_call();
    bool fault();
    void carry_out_store();
    void inject(uint64_t number, uint64_t a, uint64_t b, uint64_t c);
    void protect(int protection);
    void note_end(int status);

    pid_t pid_ = 0;
    At at_ = At::start;
    bool counting_ = false;
    bool stepping_ = true;
    bool ended_ = false;
    int exit_code_ = -1;
    int signal_ = 0;  // to be delivered
    unsigned steps_ = 0;
    uint64_t call_ = 0;  // an instruction that makes a system call
    user_regs_struct entered_{};
    bool maps_file_ = false;  // the call that was entered maps one that others may see, which is kept from writing
    std::vector<Range> shared_;
    uint64_t address_ = 0;  // of the store
    std::string about_to_;
};

}  // namespace cuslice::tests
