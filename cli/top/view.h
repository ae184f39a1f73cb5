// SPDX-License-Identifier: Apache-2.0
// A snapshot as text: what a frame of `cuslice top` says. Pure.
#pragma once

#include "cli/top/choice.h"
#include "cli/top/frame.h"
#include "cli/top/snapshot.h"
#include "cli/top/target.h"

namespace cuslice::cli::top {

/// Draws `snapshot` in lines no wider than `look`; the first is a title. From 40 columns on, nothing that matters is
/// left out. Names of users, commands and GPUs are escaped.
Lines draw(const Snapshot& snapshot, const Look& look, const Choice& choice = {});

/// Jobs and groups of this user, on each GPU.
std::vector<Target> targets(const Snapshot& snapshot, const Look& look);

/// One of several nodes.
struct NodeView {
    std::string name;
    /// Its latest answer; null: none.
    const Snapshot* snapshot = nullptr;
    /// Why there is no answer; empty while the first is waited for.
    std::string failure;
    /// Seconds since its answer, if the next one should have come; otherwise 0.
    uint64_t overdue = 0;
};

/// Draws the nodes' answers, one below the other. `clock` is the time of day. Text from a node is escaped.
Lines draw_nodes(const std::vector<NodeView>& nodes, const std::string& clock, const Look& look,
                 const Choice& choice = {});

/// The part of `lines` that fits into `rows` rows of a terminal: the title, the lines from `offset` on, and `last`
/// beside how many more there are. Moves `offset` to where something is shown.
Lines scrolled(const Lines& lines, size_t rows, size_t& offset, const Span& last, const Look& look);

}  // namespace cuslice::cli::top
