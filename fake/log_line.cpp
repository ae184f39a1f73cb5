// SPDX-License-Identifier: Apache-2.0
#include "fake/log_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace cuslice::fake {

void write_line(const std::string& line) {
    const std::string text = line + "\n";
    const char* path = std::getenv("CUSLICE_FAKE_LOG");
    int file = -1;
    if (path != nullptr && *path != '\0')
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    [[maybe_unused]] const ssize_t written = write(file >= 0 ? file : STDERR_FILENO, text.data(), text.size());
    if (file >= 0)
        close(file);
}

}  // namespace cuslice::fake
