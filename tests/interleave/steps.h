// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cuslice::tests {

/// Before each atomic operation of the code that is built for runs, and before each of its other loads and stores:
/// another thread may go on first. Nothing outside a run.
void before_step();
void before_access();

/// True in a thread that runs code of a run.
bool in_run();

/// In a forked child, which has none of the other threads.
void leave_run();

}  // namespace cuslice::tests
