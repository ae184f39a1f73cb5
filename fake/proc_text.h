// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads small files of /proc.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace cuslice::fake {

/// The beginning of a file, as text. False: errno says why not, ESRCH of a process that has just ended.
template <size_t kSize>
bool read_proc_text(const char* path, char (&text)[kSize]) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const ssize_t size = read(file, text, kSize - 1);
    const int error = size == 0 ? ESRCH : errno;
    close(file);
    errno = error;
    if (size > 0)
        text[size] = '\0';
    return size > 0;
}

}  // namespace cuslice::fake
