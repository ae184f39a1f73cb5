// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/completion_names.h"

#include "tests/catch.h"
#include "tests/cli/child.h"

namespace cuslice::tests {

TEST_CASE("profiles of fake GPUs are the folder's TOML files, in order") {
    const Folder folder;
    folder.write("t4.toml", "");
    folder.write("h200.toml", "");
    folder.write("README", "");
    CHECK(cli::profile_names(folder.path()) == std::vector<std::string>{"h200", "t4"});
    CHECK(cli::profile_names(folder.path() + "/none").empty());
}

}  // namespace cuslice::tests
