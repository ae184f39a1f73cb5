// SPDX-License-Identifier: Apache-2.0
#include "shim/process/own_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace cuslice {

BriefCommand own_command() {
    const int saved_errno = errno;
    char words[2048];
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? -1 : read(file, words, sizeof words);
    if (file >= 0)
        close(file);
    errno = saved_errno;
    return brief_command(CommandWords({words, size > 0 ? static_cast<size_t>(size) : 0}));
}

}  // namespace cuslice
