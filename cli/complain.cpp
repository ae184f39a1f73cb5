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

int complain(const ConfigError& error, int exit_code) {
    write_line(std::string(line_of(error).view()));
    return exit_code;
}

int complain(const std::string& message, int exit_code) {
    write_line("cuslice: " + message);
    return exit_code;
}

}  // namespace cuslice::cli
