// SPDX-License-Identifier: Apache-2.0
// A copy of the environment that can be changed before a program gets it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuslice::cli {

/// Keeps the order, and duplicates of names that nobody touches, so that a program gets what it would have got.
class Environment {
  public:
    explicit Environment(const char* const* lines);

    /// nothing if it is not set.
    std::optional<std::string> get(std::string_view name) const;
    /// In the place where it was, or at the end.
    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);

    const std::vector<std::string>& lines() const { return lines_; }
    /// For execve and for the readers of settings: ended by a nullptr, valid until the next change.
    std::vector<char*> pointers();

  private:
    std::vector<std::string> lines_;
};

}  // namespace cuslice::cli
