// Asking in a child process what the launcher had better not do itself: load a driver. The child is the launcher again,
// without the preloaded library, whose dlopen would give it something else.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/installation.h"

namespace cuslice::cli {

struct Answer {
    /// Why there is none; empty if there is one.
    std::string failure;
    std::string text;
};

/// Starts the launcher with `question` and returns what it answers. With `environment` as it is.
Answer ask_child(const Installation& installation, Environment environment, const std::vector<std::string>& question);

/// The child's side: `words` are the descriptor to answer on and the question. Returns the exit code.
int answer_question(const std::vector<std::string>& words);

}  // namespace cuslice::cli
