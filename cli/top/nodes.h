// SPDX-License-Identifier: Apache-2.0
// Several nodes, as `cuslice top --nodes` asks them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "cli/top/live.h"
#include "cli/top/node_watch.h"
#include "cli/top/signals.h"

namespace cuslice::cli::top {

class Nodes final : public Source {
  public:
    void add(const std::string& name, NodeCommand command) { nodes_.emplace_back(name, std::move(command)); }
    ~Nodes() override { stop(); }

    void look() override;
    void add_descriptors(std::vector<pollfd>& descriptors) const override;
    bool take() override;
    uint64_t patience() const override;
    Lines draw(const Look& look, const Choice& choice) const override;
    /// Tells all commands to end, and kills what has not ended after two seconds.
    void stop() override;

    /// Asks every node once, and waits until each has answered or failed. A signal that ends the process ends the
    /// commands first.
    void ask_once(const Signals& signals);
    /// One document: what each node has answered, or why it has not.
    Json document() const;
    /// "n1: why": of each node that has not answered, or has no GPU to list. Escaped.
    std::vector<std::string> failures() const;

  private:
    std::deque<NodeWatch> nodes_;
    std::string clock_;
};

}  // namespace cuslice::cli::top
