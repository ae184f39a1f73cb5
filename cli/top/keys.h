// SPDX-License-Identifier: Apache-2.0
// Keys of the live view of `cuslice top`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cuslice::cli::top {

/// Decodes keys, as a terminal sends them. An escape sequence may come in pieces.
class Keys {
  public:
    enum class Wish : uint8_t {
        none,
        quit,
        help,
        sort,
        reverse,
        filter,
        tree,
        limit,
        escape,
        up,
        down,
        page_up,
        page_down,
        top,
        bottom
    };
    /// Returns the wish that `byte` completes, or none.
    Wish read(char byte);
    /// A lone Escape has no end: to be called once nothing has come behind it for a moment.
    Wish pause();
    /// True while an escape sequence, or a lone Escape, has begun.
    bool waiting() const { return !sequence_.empty(); }

  private:
    std::string sequence_;
};

/// A key and its meaning, for the help.
struct KeyHelp {
    std::string_view keys, meaning;
};
std::span<const KeyHelp> key_help();

}  // namespace cuslice::cli::top
