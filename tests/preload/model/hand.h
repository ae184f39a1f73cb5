// SPDX-License-Identifier: Apache-2.0
// Something that a user does in a process of its own, with that user's rights and no others.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace cuslice::tests::model {

/// Gives up all that root has, for good. The process may be looked at in /proc as any other of that user's.
void become(unsigned user);
/// In a forked child: closes what it has of the model's but for descriptors 0 to 2. Programs of the model would wait
/// for the end of their input otherwise.
void close_inherited();

class Hand {
  public:
    using Say = std::function<void(const std::string&)>;
    /// Forks a child that becomes `user` (0: stays root) and works. Its descriptor 1 is the one that it speaks by. It
    /// says one line of what it does, and the model goes on then. After that it stays as it is, with what it has open
    /// and locked, until it is let go of; unless it ends by itself.
    Hand(unsigned user, const std::function<void(const Say&)>& work);
    ~Hand();
    Hand(const Hand&) = delete;
    Hand& operator=(const Hand&) = delete;

    /// Empty if it ended before it could say anything, as by SIGBUS.
    const std::string& said() const { return said_; }

  private:
    pid_t pid_ = -1;
    std::string said_;
};

}  // namespace cuslice::tests::model
