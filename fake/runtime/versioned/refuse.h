// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice::fake {

/// Notes cudaErrorNotSupported as this thread's last error and returns it; says so by name unless that was `said`
/// already.
int refuse(const char* name, bool said);

}  // namespace cuslice::fake
