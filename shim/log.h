// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "config/log_setting.h"
#include "config/text.h"

namespace cuslice {

using LogLine = FixedText<1536>;

// Says one line, `cuslice: ` before it and a newline after it, where the setting `log` wants it, if it wants that much.
// One write(2), nothing allocated, errno kept; never to stdout, and never so that the program waits, gets a signal, or
// finds the line in a file of its own. What can't be written so is lost. Thread-safe.
void log_line(LogLevel level, const LogLine& line);

// The same before there are settings, or about them: always, to stderr. The line is complete.
void log_to_stderr(std::string_view whole_line);

// The settings can't be obeyed: why, and that the program gets no GPU. Where it goes on without one it may not say so
// itself. Always, to stderr.
void log_bad_configuration();

// When the library is loaded: what stderr is.
void note_stderr();

// The file that `log` names, to append to; -1 if it names none, or it can't be opened.
int open_log_file();

// True if lines of this level are wanted.
bool wants(LogLevel level);

}  // namespace cuslice
