// SPDX-License-Identifier: Apache-2.0
// Help texts and pages of the manual.
#pragma once
#include <string>
#include <string_view>

#include "cli/settings/command.h"

namespace cuslice::cli {

/// `all`, of --help-all: each setting is explained, and not only named.
enum class Detail { most_used, all };

/// The text of `cuslice --help`, or of `cuslice COMMAND --help`. `columns` says in words what the columns of
/// `cuslice ps` show.
std::string help_text(Command topic, Detail detail, std::string_view columns);

/// The source of a page of the manual, in the macros of man(7): cuslice(1), or cuslice.toml(5) for "cuslice.toml".
std::string manual_page(const std::string& page, const std::string& version);

}  // namespace cuslice::cli
