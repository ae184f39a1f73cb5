// A snapshot as text: what a frame of `cuslice top` says. Pure.
#pragma once

#include "cli/top/frame.h"
#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

/// What `snapshot` says, in lines no wider than `look`; the first is a title. From 40 columns on, nothing that matters
/// is left out. Names of users, commands and GPUs are escaped.
Lines draw(const Snapshot& snapshot, const Look& look);

/// What of `lines` fits into `rows` rows of a terminal: the title, the lines from `offset` on, and a last row that says
/// how many more there are. `offset` is put where something is shown.
Lines scrolled(const Lines& lines, std::size_t rows, std::size_t& offset, const Look& look);

}  // namespace cuslice::cli::top
