// Finding a program as a shell does, and seeing what of it the library cannot reach.
#pragma once

#include <string>

#include "cli/environment.h"

namespace cuslice::cli {

/// A program that was found, or the exit code and the line of a shell that found none.
struct Program {
    std::string path;
    int exit_code = 0;
    std::string message;
};

/// With a slash in `name` that file, else the first in PATH that may be executed.
Program find_program(const std::string& name, const Environment& environment);

/// A line on why LD_PRELOAD has no effect on the program (statically linked, set-user-ID, another architecture), or
/// nothing. A script's interpreter is looked at in its place.
std::string why_out_of_reach(const std::string& path);

}  // namespace cuslice::cli
