// SPDX-License-Identifier: Apache-2.0
// Finding a program as a shell does, and seeing what of it the library cannot reach.
#pragma once

#include <string>

#include "cli/launch/environment.h"

namespace cuslice::cli {

/// A program that was found, or the exit code and the line of a shell that found none.
struct Program {
    std::string path;
    int exit_code = 0;
    std::string message;
};

/// With a slash in `name` that file, else the first in PATH that may be executed.
Program find_program(const std::string& name, const Environment& environment);

/// The file that the kernel starts for a program: itself, or a script's interpreter.
std::string started_file(const std::string& path);

/// The verdict on whether the preloaded library reaches a program.
struct Reach {
    /// A line on why it doesn't (statically linked, set-user-ID, another architecture or C library), or nothing.
    std::string why_not = {};
    /// The program's loader would end it over LD_PRELOAD: musl's does.
    bool fatal = false;
};

/// Looks at started_file(path).
Reach look_at_reach(const std::string& path);

}  // namespace cuslice::cli
