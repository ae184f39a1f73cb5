// SPDX-License-Identifier: Apache-2.0
// cuslice plot: draws recordings. What draws is written in Python (python/cuslice/plot.py); here a Python is found.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/commands.h"
#include "cli/launch/installation.h"
#include "cli/launch/program.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"

namespace cuslice::cli {
namespace {

// A virtual environment's own, where this is installed in one, as that has the packages that came with it; else the
// first one in PATH. Empty if there is none.
std::string find_python(const Installation& installation, const Environment& environment) {
    const std::string folder = installation.executable.substr(0, installation.executable.rfind('/'));
    std::string own = folder + "/python3";
    if (::access((folder + "/../pyvenv.cfg").c_str(), F_OK) == 0 && ::access(own.c_str(), X_OK) == 0)
        return own;
    const Program program = find_program("python3", environment);
    return program.exit_code == 0 ? program.path : std::string();
}

}  // namespace

int plot_recordings(const Invocation& invocation) {
    ConfigError error;
    Installation installation;
    if (!find_installation(installation, error))
        return fail(error, kConfig);
    if (::access(installation.plot.c_str(), R_OK) != 0)
        return fail(installation.plot + ": no such file: this installation is not whole", kNotFound);
    std::string python = find_python(installation, invocation.environment);
    if (python.empty())
        return fail("plot needs Python 3.8 or newer, and PATH has no python3", kUnavailable);
    std::string script = installation.plot;
    std::vector<std::string> words = invocation.arguments.program;
    std::string no_cache = "-B";  // nothing is left in the installation that its removal would not know
    std::vector<char*> arguments{python.data(), no_cache.data(), script.data()};
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    Environment environment = invocation.environment;
    ::execve(python.c_str(), arguments.data(), environment.pointers().data());
    return fail(python + ": " + std::strerror(errno), kNotStarted);
}

}  // namespace cuslice::cli
