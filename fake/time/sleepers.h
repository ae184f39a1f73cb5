// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sees whether a process's threads all sleep.

#include <cstdint>

namespace cuslice::fake {

/// How often the threads of a process have been put to sleep or held up, summed up; 0 if one of them runs or may run,
/// or if that can't be seen. Two looks that see the same number: nobody has run in between. A process that is stopped
/// sleeps.
uint64_t sleeps_of(int pid);

}  // namespace cuslice::fake
