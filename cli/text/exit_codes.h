// SPDX-License-Identifier: Apache-2.0
// The launcher's exit codes. A program that was started exits with its own.
#pragma once

namespace cuslice::cli {

inline constexpr int kUsage = 64;            // EX_USAGE: the command line itself is not understood
inline constexpr int kNoGpu = 69;            // EX_UNAVAILABLE: no driver, no GPU, or no such job, group or process
inline constexpr int kUnavailable = kNoGpu;  // the same, of what a command needs to do its work
inline constexpr int kCantWrite = 73;        // EX_CANTCREAT: a file that was asked for can't be written
inline constexpr int kRefused = 75;          // EX_TEMPFAIL: the slice is taken by others; nothing was started
inline constexpr int kConfig = 78;       // EX_CONFIG: a setting, or the installation, is not right; nothing was started
inline constexpr int kNotStarted = 126;  // as a shell's: found, but it cannot be started
inline constexpr int kNotFound = 127;    // as a shell's: there is no such program

}  // namespace cuslice::cli
