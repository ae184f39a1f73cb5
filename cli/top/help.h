// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/top/choice.h"
#include "cli/top/frame.h"

namespace cuslice::cli::top {

/// The keys of the live view, and the pieces of a bar.
Lines draw_help(const Look& look);
/// The last row where nothing else is to be said there: keys, and what is chosen.
Span keys_row(const Choice& choice, const Look& look);

}  // namespace cuslice::cli::top
