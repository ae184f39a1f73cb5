// SPDX-License-Identifier: Apache-2.0
// The terminal that the output goes to, if it goes to one.
#pragma once

#include <cstddef>

#include "cli/text/table.h"

namespace cuslice::cli {

/// The locale's characters are UTF-8, as LC_ALL, LC_CTYPE and LANG say.
bool locale_is_utf8();
/// The terminal shows colours, as TERM and COLORTERM say, and they are wanted (NO_COLOR).
bool terminal_has_colours();
/// Columns of the output: COLUMNS where it is set, else those of the terminal; kTerminal of what is none.
size_t output_columns();
/// A table's form on stdout: as wide as output_columns(), in colours on a terminal that has them. `whole`: no line is
/// folded and no text cut off, however wide the terminal is.
TableStyle style_of_output(size_t keys = 1, bool whole = false);

}  // namespace cuslice::cli
