// SPDX-License-Identifier: Apache-2.0
// Asks another machine what `cuslice top` says there, by a command such as ssh.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/top/history.h"
#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

/// How a node is asked.
struct NodeCommand {
    /// The command's words, started without a shell. Those of ssh, and behind them what runs on the node.
    std::vector<std::string> words;
    /// The answer is a line of JSON each `interval` milliseconds, and the command goes on; otherwise it is one
    /// document, and the command ends.
    bool stream = false;
    uint64_t interval = 1000;
    /// Milliseconds in which an answer has to come.
    uint64_t timeout = 20'000;
};

/// One node. The command runs in a session of its own, so that it can neither ask anything at the terminal nor is told
/// of its keys, and it gets SIGTERM if this process is killed. Not thread-safe.
class NodeWatch {
  public:
    NodeWatch(std::string name, NodeCommand command) : name_(std::move(name)), command_(std::move(command)) {}
    ~NodeWatch() { kill(); }
    NodeWatch(const NodeWatch&) = delete;
    NodeWatch& operator=(const NodeWatch&) = delete;

    /// Starts the command, unless it runs or has failed a short while ago. While it fails again and again it is started
    /// less and less often, down to every five minutes.
    void ask();
    void add_descriptors(std::vector<pollfd>& descriptors) const;
    /// Reads what has come, a part of it if it is much. True where there is an answer after a failure, or the other way
    /// round.
    bool take();
    /// Milliseconds after which take() has something to do although nothing comes.
    uint64_t patience() const;
    /// The command runs.
    bool running() const { return pid_ > 0; }

    /// Tells the command to end, with all that it has started.
    void terminate();
    /// Kills it with all that it has started. Its end is not waited for where the kernel doesn't let it go.
    void kill();
    /// True once it has ended; what it has left behind is killed.
    bool reap();

    const std::string& name() const { return name_; }
    /// The latest answer, and the document it was; null before the first, and once the node has failed after it.
    const Snapshot* latest() const { return latest_ ? &*latest_ : nullptr; }
    const Json& document() const { return document_; }
    /// Why there is no answer; empty while there is one, or while the first is waited for. What another machine has
    /// written is in it as it came.
    const std::string& failure() const { return failure_; }
    /// Milliseconds since the latest answer, where the next one should have come long ago; otherwise 0.
    uint64_t overdue() const;

  private:
    void read_output();
    void read_errors();
    std::string read_text();
    bool accept(std::string_view text);
    void greet(std::string_view line);
    bool fail(std::string why);
    std::string reason() const;
    void close_pipes();

    const std::string name_;
    const NodeCommand command_;
    pid_t pid_ = 0;
    int output_ = -1, errors_ = -1;
    std::string text_, error_text_, greeting_;
    size_t greeted_ = 0;  // bytes that were no answer
    int status_ = 0;
    // Milliseconds of CLOCK_MONOTONIC; 0: never.
    uint64_t asked_ = 0, answered_ = 0, closed_ = 0, again_ = 0;
    uint64_t pause_ = 0;  // milliseconds
    std::optional<Snapshot> latest_;
    History history_;
    Json document_;
    std::string failure_;
};

}  // namespace cuslice::cli::top
