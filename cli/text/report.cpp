// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cli/text/report.h"
#include "config/printable.h"

namespace cuslice::cli {
namespace {

// -1: nobody reads along.
int report_file = -1;

// In one write, so that lines of several processes do not mix.
void write_line(std::string line) {
    line += '\n';
    for (const int file : {STDERR_FILENO, report_file})
        if (file >= 0 && ::write(file, line.data(), line.size()) < 0)
            continue;  // nobody is left to be told
}

// Names in a message may be other people's: of processes, and of files that anybody has put into the ledgers' folder.
// Some were escaped already, so a backslash stays one.
std::string escaped(std::string_view message) {
    std::string printable;
    for (;;) {
        const size_t backslash = std::min(message.find('\\'), message.size());
        append_printable(printable, message.substr(0, backslash));
        if (backslash == message.size())
            return printable;
        printable += '\\';
        message.remove_prefix(backslash + 1);
    }
}

}  // namespace

void take_report_descriptor() {
    const char* const number = std::getenv(kReportVariable);
    if (number == nullptr)
        return;
    const int file = std::atoi(number);
    if (file > STDERR_FILENO && ::fcntl(file, F_SETFD, FD_CLOEXEC) == 0)
        report_file = file;
    ::unsetenv(kReportVariable);
}

void report_start() {
    if (report_file >= 0 && ::write(report_file, "", 1) < 0)
        report_file = -1;
}

void warn(const std::string& message) { write_line("cuslice: " + escaped(message)); }
void warn(const ConfigError& error) { write_line(std::string(line_of(error))); }

int fail(const ConfigError& error, int exit_code) {
    warn(error);
    return exit_code;
}

int fail(const std::string& message, int exit_code) {
    warn(message);
    return exit_code;
}

}  // namespace cuslice::cli
