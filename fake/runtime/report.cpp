// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/report.h"

#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace cuslice::fake {

void log_line(const char* format, ...) {
    // The host may look at errno after a call that it believes to be NVIDIA's.
    const int saved = errno;
    char line[512];
    int length = std::snprintf(line, sizeof line, "cuslice: ");
    va_list arguments;
    va_start(arguments, format);
    const int added = std::vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    va_end(arguments);
    if (added > 0) {
        length +=
            added < static_cast<int>(sizeof line) - length - 2 ? added : static_cast<int>(sizeof line) - length - 2;
    }
    line[length++] = '\n';
    // Nothing can be done about a closed stderr.
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line, length);
    errno = saved;
}

}  // namespace cuslice::fake
