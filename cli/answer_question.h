// SPDX-License-Identifier: Apache-2.0
// The child's side of ask_child().
#pragma once

#include <string>
#include <vector>

namespace cuslice::cli {

/// `words` are the descriptor to answer on and the question. Returns the exit code.
int answer_question(const std::vector<std::string>& words);

}  // namespace cuslice::cli
