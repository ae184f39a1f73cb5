// SPDX-License-Identifier: Apache-2.0
// Has ld.so preload libraries into a child, and listens to what it says.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/environment.h"
#include "cli/launch/installation.h"

namespace cuslice::cli::doctor {

struct LoaderAnswer {
    /// libcuslice.so is in the child.
    bool library_there = false;
    /// Output of ld.so, on one line; or the reason why the child gave no answer.
    std::string words;
    /// Paths of the child's libraries, in the order in which ld.so looks functions up.
    std::vector<std::string> objects;
};

/// Starts the launcher with the LD_PRELOAD of `environment`, for at most 20 s.
LoaderAnswer ask_loader(const Installation& installation, const Environment& environment);

/// The child's side.
std::string answer_of_loader();

}  // namespace cuslice::cli::doctor
