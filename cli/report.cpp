#include <unistd.h>

#include <string>

#include "cli/commands.h"

namespace cuslice::cli {
namespace {

// In one write, so that lines of several processes do not mix.
void write_line(std::string line) {
    line += '\n';
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nobody is left to be told
}

}  // namespace

void warn(const std::string& message) { write_line("cuslice: " + message); }
void warn(const ConfigError& error) { write_line(std::string(line_of(error).view())); }

int fail(const ConfigError& error, int exit_code) {
    warn(error);
    return exit_code;
}

int fail(const std::string& message, int exit_code) {
    warn(message);
    return exit_code;
}

}  // namespace cuslice::cli
