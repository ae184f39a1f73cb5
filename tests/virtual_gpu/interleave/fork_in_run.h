// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace cuslice::tests {

/// Forks as the library's hooks do, in every 16th call, as a fork takes long. In the child, in which no lock is
/// anybody's and nothing is a step of a run, `in_child` is called. False if it answers false, or waits for ever.
bool fork_in_run(const std::function<bool()>& in_child);

}  // namespace cuslice::tests
