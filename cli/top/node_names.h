// SPDX-License-Identifier: Apache-2.0
// Lists of nodes, as Slurm writes them: "gpu[01-04,7],login".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cuslice::cli::top {

/// So many nodes can be asked at once.
inline constexpr size_t kMaxNodes = 256;

/// The nodes of `list`, in its order and each once: names with commas between them, and ranges in brackets, which keep
/// their zeros. False with why not in `error`, also where there are none, or more than kMaxNodes. A name has letters,
/// digits and _.:@%-, and begins with none of the last: it becomes a word of a command line. Pure.
bool parse_nodes(std::string_view list, std::vector<std::string>& nodes, std::string& error);

/// True if a shell on another machine takes `word` literally: it has only letters, digits and _./:,@%+=-. Pure.
bool is_plain_word(std::string_view word);

}  // namespace cuslice::cli::top
