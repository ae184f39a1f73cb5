// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace cuslice {

// Says, at most once a minute, that the kernel gives no memory for our records, so that calls are refused that fit the
// limit: see report_no_kernel_memory.
void report_no_host_memory(size_t bytes, int error);

}  // namespace cuslice
