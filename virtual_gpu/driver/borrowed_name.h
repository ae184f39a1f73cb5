// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// The name under which we have what a program opens as `name`: "libcuda.so.1" for a file of the driver, whatever it is
// called there (libcuda.so.580.95.05, a link), "libnvidia-ml.so.1" for one of NVML; null for any other. Another name
// than theirs is only taken for a file that is there, so that what fails without us fails with us. `caller`: whose
// search path a name without a slash is looked for in. errno is kept. Thread-safe; a file of another kind costs a
// system call, and a name without a slash a comparison.
const char* borrowed_name(const char* name, const void* caller);

}  // namespace cuslice
