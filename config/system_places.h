// SPDX-License-Identifier: Apache-2.0
// Where the machine's settings are, and how their files are read.
#pragma once

#include "config/text.h"
#include "config/text_file.h"
#include "config/toml/reader.h"

namespace cuslice {

/// The system's file.
inline constexpr const char* kSystemFile = "/etc/cuslice/cuslice.toml";

/// Where the machine's settings are. Others than these are for tests.
struct SystemPlaces {
    /// The system's file. Its rules are in the folder rules.d beside it.
    const char* file = kSystemFile;
    /// Prefix of /proc, /etc/passwd and /etc/group.
    const char* root = "";
    /// User that the file and its rules may belong to, besides root.
    unsigned owner = 0;
};

/// True if nobody but root, or `system.owner`, can change a file or folder of the system's. A group may where it is
/// root's. Root's files count in a user namespace too, where they seem to belong to nobody. On failure `why` tells that
/// its `content`, such as "rules", can't be trusted.
bool only_root_can_change(const FileRights& rights, const SystemPlaces& system, std::string_view content, Reason& why);

/// Gives the function that reads TOML, or nullptr and why. Called only when there is a file to read, so that whoever
/// has none never pays for the module in which it lives.
using OpenToml = cuslice_toml_parse_function* (*)(Reason& why);

}  // namespace cuslice
