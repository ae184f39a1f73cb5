// SPDX-License-Identifier: Apache-2.0
#include "fake/libraries/report.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace cuslice::fake {

void report(const char* format, ...) {
    const int saved = errno;
    char line[512];
    const int before = std::snprintf(line, sizeof line, "cuslice fake GPU: ");
    va_list arguments;
    va_start(arguments, format);
    const int added = std::vsnprintf(line + before, sizeof line - before - 1, format, arguments);
    va_end(arguments);
    int length = before + std::clamp(added, 0, static_cast<int>(sizeof line) - before - 2);
    line[length++] = '\n';
    const char* path = std::getenv("CUSLICE_FAKE_LOG");
    const int file = path != nullptr && *path != '\0' ? ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                                                      : STDERR_FILENO;
    // Nothing can be done about a line that can't be written.
    [[maybe_unused]] const auto written = ::write(file >= 0 ? file : STDERR_FILENO, line, length);
    if (file >= 0 && file != STDERR_FILENO)
        ::close(file);
    errno = saved;
}

void report_unsupported(const char* name, std::atomic<bool>& said) {
    if (!said.exchange(true))
        report("%s is not supported", name);
}

void report_no_memory(const char* function, const char* what, const void* address, unsigned long long bytes) {
    static constinit std::atomic<bool> said{false};
    if (said.exchange(true))
        return;
    report("%s: %s takes %llu bytes at %p, where the GPU has no memory", function, what, bytes, address);
}

}  // namespace cuslice::fake
