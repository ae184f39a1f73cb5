// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace cuslice::fake {

/// Writes "cuslice fake GPU: <text>" to stderr, or to the file that CUSLICE_FAKE_LOG names, in one piece. printf's
/// format; at most 500 bytes. Thread-safe.
[[gnu::format(printf, 1, 2)]] void report(const char* format, ...);

/// Names a function that the library lacks, the first time.
void report_unsupported(const char* name, std::atomic<bool>& said);

/// Says that `what` of a call of `function` lies where no memory is, the first time in this process.
void report_no_memory(const char* function, const char* what, const void* address, unsigned long long bytes);

}  // namespace cuslice::fake
