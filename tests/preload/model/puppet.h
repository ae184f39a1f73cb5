// SPDX-License-Identifier: Apache-2.0
// A process that takes a place in its user's ledger, as a program under cuslice does, and can be stopped at any of its
// instructions: where it holds the header's lock, or in the middle of a claim.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <random>
#include <string>

#include "policy/ledger/layout.h"

namespace cuslice::tests::model {

class Puppet {
  public:
    enum class At { anywhere, with_lock, in_claim };

    struct Wish {
        unsigned user = 0;
        std::string folder, uuid;
        uint64_t capacity = 0;  // bytes, of the GPU
        std::string job;
        uint64_t bytes = 0;  // the job's limit, which is reserved
    };

    /// Takes the place as far as to some instruction of this kind, which the number draws, and is stopped there; at the
    /// end if it never comes there.
    Puppet(const Wish& wish, At at, uint64_t random);
    ~Puppet();
    Puppet(const Puppet&) = delete;
    Puppet& operator=(const Puppet&) = delete;

    pid_t pid() const { return pid_; }
    bool is_stopped() const { return stopped_; }
    /// SIGCONT, and waits until it has what it wanted, or was refused it: a Finding if that takes too long.
    void go_on();
    void stop();
    std::string describe() const;

    /// False where processes can't be traced.
    static bool possible();

    /// Takes the place in this process, which keeps it. False: it is refused. `over_exec`: as the launcher does.
    static bool join_for_life(const Wish& wish, bool over_exec);

  private:
    struct Shared;
    enum class Seen { nothing, lock, claim };
    [[noreturn]] void act(const Wish& wish);
    bool advance(bool one_step);
    Seen look() const;
    void walk(At at, std::mt19937_64& random);

    Wish wish_;
    pid_t pid_ = -1;
    bool stopped_ = false, ended_ = false;
    Seen seen_ = Seen::nothing;
    unsigned calls_ = 0, steps_ = 0;
    int signal_ = 0;  // that it is given when it goes on
    Shared* shared_ = nullptr;
};

}  // namespace cuslice::tests::model
