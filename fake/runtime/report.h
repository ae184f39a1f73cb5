// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice::fake {

/// Writes one line, "cuslice: " in front, to stderr with a single write(2), so that lines of several threads don't mix.
/// Allocates nothing; what is longer than 512 bytes is cut. Thread-safe.
[[gnu::format(printf, 1, 2)]] void log_line(const char* format, ...);

}  // namespace cuslice::fake
