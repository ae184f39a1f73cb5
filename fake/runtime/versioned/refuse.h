// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice::fake {

/// Notes cudaErrorNotSupported as this thread's last error and returns it; says so by name unless that was `said`
/// already.
int refuse(const char* name, bool said);

}  // namespace cuslice::fake

/// The same for a function of a newer runtime, by whoever has led a program's calls of it here (shim/redirect/). `name`
/// stays where it is. Thread-safe.
extern "C" int cuslice_lacks(const char* name);
