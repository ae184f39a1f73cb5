// SPDX-License-Identifier: Apache-2.0
#include "cli/text/write_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace cuslice::cli {

int write_file(const std::string& path, const std::string& text) {
    std::string made = path + ".XXXXXX";
    const int file = ::mkstemp(made.data());
    if (file < 0)
        return errno;
    const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const bool done = whole && ::fchmod(file, 0644) == 0 && ::rename(made.c_str(), path.c_str()) == 0;
    const int code = done ? 0 : whole ? errno : ENOSPC;
    ::close(file);
    if (!done)
        ::unlink(made.c_str());
    return code;
}

}  // namespace cuslice::cli
