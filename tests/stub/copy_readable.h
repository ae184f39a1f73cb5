// SPDX-License-Identifier: Apache-2.0
// Parts of this machine's /etc, for a machine of the test's own.
#pragma once

#include <unistd.h>

#include <filesystem>

namespace cuslice::tests {

/// Copies a file, a link, or a folder with all that is in it, but for files that this user may not read.
inline void copy_readable(const std::filesystem::path& from, const std::filesystem::path& to) {
    namespace fs = std::filesystem;
    if (fs::is_symlink(from))
        return fs::copy_symlink(from, to);
    if (::access(from.c_str(), R_OK) != 0)
        return;
    if (!fs::is_directory(from))
        return fs::copy(from, to);
    fs::create_directory(to, from);
    for (const auto& entry : fs::directory_iterator(from))
        copy_readable(entry, to / entry.path().filename());
}

}  // namespace cuslice::tests
