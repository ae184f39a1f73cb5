// SPDX-License-Identifier: Apache-2.0
// Files that programs of all users load.
#pragma once

#include <string>

namespace cuslice::cli {

/// True if nobody but root can change what `path` leads to: each folder and link on the way to it is root's, as it is
/// itself, and nobody else may write it. `path` is one inside of `root`, where its links lead to as well. Else `why`
/// names the first file that is not so, as it is called inside.
bool only_root_can_change(const std::string& root, const std::string& path, std::string& why);

/// The same of all that lies below a folder, too.
bool only_root_can_change_all(const std::string& root, const std::string& folder, std::string& why);

}  // namespace cuslice::cli
