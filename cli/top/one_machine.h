// SPDX-License-Identifier: Apache-2.0
// This machine, as `cuslice top` looks at it again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/top/gpu_watch.h"
#include "cli/top/history.h"
#include "cli/top/live.h"
#include "cli/top/snapshot.h"
#include "cli/top/view.h"

namespace cuslice::cli::top {

class OneMachine : public Source {
  public:
    /// `ask` asks for the GPUs, in a process of its own. `look` says what is to be seen, given what they have answered
    /// last (null: nothing yet).
    OneMachine(std::function<Gpus()> ask, std::function<Snapshot(const Gpus*)> look)
        : gpus_(std::move(ask)), look_(std::move(look)) {}

    void look() override;
    void add_descriptors(std::vector<pollfd>& descriptors) const override;
    bool take() override;
    Lines draw(const Look& look, const Choice& choice) const override { return top::draw(snapshot_, look, choice); }
    std::vector<Target> targets(const Look& look) const override { return top::targets(snapshot_, look); }
    void stop() override { gpus_.stop(); }

    /// Prints a document of JSON on a line of its own each `interval` milliseconds, the first once the GPUs have
    /// answered, or after two seconds without them. Returns when nobody reads stdout any more.
    void stream(uint64_t interval);

  private:
    GpuWatch gpus_;
    const std::function<Snapshot(const Gpus*)> look_;
    Snapshot snapshot_;
    History history_;
};

}  // namespace cuslice::cli::top
