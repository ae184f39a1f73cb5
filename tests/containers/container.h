// SPDX-License-Identifier: Apache-2.0
// Programs in containers: other pids, mounts and IPC, and whatever else a test wants to be different in there. Each of
// three test programs makes them with a tool of its own (unshare, bwrap, runc), from the files of this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/cli/child.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {

enum class Shm {
    host,   // the machine's
    small,  // 64 KiB of its own
    none,   // there is no /dev/shm
};

struct Like {
    bool users = false;      // a user namespace: user 0 inside, whoever that is outside
    bool read_only = false;  // the root
    Shm shm = Shm::host;
    bool proc = true;
    unsigned user = 0;  // who starts it; 0: whoever runs the tests
    Words writable{};   // folders that can be written all the same
};

/// "users, no /proc": for CAPTURE and for what is skipped.
std::string text_of(const Like& like);

/// Under which the tests are named: "bwrap".
extern const char* const kTool;

class Container {
  public:
    explicit Container(const Like& like);
    ~Container();
    Container(const Container&) = delete;
    Container& operator=(const Container&) = delete;

    /// A command that runs a program in it, one at a time, with the environment that the command gets.
    Words command(const Words& program) const;
    /// Words to put before all others: they make the process that starts it like.user's.
    Words before() const;

  private:
    struct Made;
    Like like_;
    std::unique_ptr<Made> made_;
};

/// The words before a command that make it another user's.
Words as_user(unsigned user);

/// True if this machine lets tests make such a container; otherwise a line says that it doesn't, and why.
bool can_make(const Like& like);

/// The processes that descend from this one, as the host counts them; the youngest first.
std::vector<int> descendants(int pid);

/// Bytes of all living processes together, as the fake GPU's books have them, in whatever pid namespace.
uint64_t held_by_all(const std::string& folder);
uint64_t peak_of_all(const std::string& folder);

}  // namespace cuslice::tests
