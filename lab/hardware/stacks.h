// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stacks of processes that hang, on a machine that may have no debugger.
#include <sys/types.h>

#include <cstdio>
#include <vector>

namespace cuslice::check {

/// The processes below this one, the deepest last.
std::vector<pid_t> descendants(pid_t parent);

/// Writes the stack of every thread: gdb's or cuda-gdb's, where there is one that manages it within `seconds`, else
/// what /proc tells of each thread with the addresses on its stack that lie in code. Nothing for a shell or a guard,
/// which only wait for others.
void print_stacks(FILE* file, pid_t pid, double seconds);

}  // namespace cuslice::check
