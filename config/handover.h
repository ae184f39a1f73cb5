// SPDX-License-Identifier: Apache-2.0
// Hands the settings of `cuslice run` to the preloaded library, and to a `cuslice run` inside, in one environment
// variable.
//
// `1` and then for each setting `;SOURCE.LEVEL KEY GPU VALUE ORIGIN`, a ceiling's key being `ceiling.limit`; spaces,
// semicolons, percent signs and control characters inside a field are written %XX. Its form is private to one version
// of cuslice.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "config/settings.h"

namespace cuslice {

/// The variable in which the launcher hands its settings to the library.
inline constexpr std::string_view kHandOver = "CUSLICE_SETTINGS";

/// Writes the settings into `buffer`, ended by a NUL, and returns the length; 0 if there is no room. Left out are what
/// is read again wherever it is needed (other tools' variables, the rules of the system), what goes by a variable of
/// its own (fake, fake-kernels, fake-machine), what has been used up (config), and what a stronger setting hides on
/// every GPU. Of the limits of outer jobs it takes those of the nearest and of the two outermost.
size_t write_handover(const Settings& settings, std::span<char> buffer);

/// How much of a hand-over is wanted: the library takes all; a launcher reads the user's and the system's files itself.
enum class HandOverPart { all, without_files };

/// Adds what `text` holds, every setting one level weaker than it was written.
bool read_handover(Settings& settings, std::string_view text, HandOverPart part, ConfigError& error);

}  // namespace cuslice
