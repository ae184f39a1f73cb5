// SPDX-License-Identifier: Apache-2.0
// The part of a command line that tells which program it is. Command lines may hold secrets; this part has no argument.
#pragma once

#include <optional>
#include <string_view>

#include "config/text.h"

namespace cuslice {

/// The words of a command line, each ended by a zero byte, as in /proc/PID/cmdline. Does not own them.
class CommandWords {
  public:
    explicit CommandWords(std::string_view bytes) : bytes_(bytes) {}
    /// Empty past the end.
    std::string_view operator[](size_t number) const;
    /// True if there are so many words and one more.
    bool has(size_t number) const;
    /// The program's name without its folder; the whole first word where the process has given itself a title.
    std::string_view program() const;
    /// The number of the word that names the script of an interpreter: of Python, a shell, Perl, Ruby, Node or Julia.
    std::optional<size_t> script() const;
    size_t behind_options() const;

  private:
    std::string_view from(size_t number) const;
    std::string_view bytes_;
};

using BriefCommand = FixedText<160>;

/// "python train.py", "python -m torch.distributed.run", "python -c", "a.out". Not escaped. Pure.
BriefCommand brief_command(const CommandWords& words);

/// The part of a path behind its last slash.
constexpr std::string_view file_name_of(std::string_view path) { return slice(path, path.rfind('/') + 1); }

}  // namespace cuslice
