// SPDX-License-Identifier: Apache-2.0
// Lines of the launcher's on stderr.
#pragma once
#include <string>

#include "config/config_error.h"

namespace cuslice::cli {

inline constexpr const char* kReportVariable = "CUSLICE_REPORT";
/// Takes it out of this process's environment: the number of a descriptor that whoever starts the launcher
/// reads. It gets every line that goes to stderr, and a NUL byte right before the program is started; the program
/// doesn't have it.
void take_report_descriptor();
/// Writes that NUL byte.
void report_start();

/// One line on stderr, beginning with `cuslice: `.
void warn(const std::string& message);
void warn(const ConfigError& error);
/// The same, of what ends the command. Returns `exit_code`.
int fail(const ConfigError& error, int exit_code);
int fail(const std::string& message, int exit_code);

}  // namespace cuslice::cli
