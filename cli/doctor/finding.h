// SPDX-License-Identifier: Apache-2.0
// Findings of the checks, and their text for people and for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuslice::cli::doctor {

enum class Grade : uint8_t {
    ok,
    /// A program starts, but part of what was asked for won't work, or not always.
    warning,
    /// `cuslice run` refuses to start, or the program gets no slice.
    problem
};

struct Finding {
    Grade grade;
    /// Its name in scripts and documents: "driver-missing".
    std::string name;
    std::string seen;
    /// Empty if nothing is to be done.
    std::string advice;
};

/// Findings of all checks, in the order in which they were made.
class Findings {
  public:
    void ok(std::string name, std::string seen);
    void warning(std::string name, std::string seen, std::string advice);
    void problem(std::string name, std::string seen, std::string advice);
    void add(Finding finding) { all_.push_back(std::move(finding)); }

    const std::vector<Finding>& all() const { return all_; }
    /// True if any finding from number `first` on is not ok.
    bool any_since(size_t first) const;
    /// The worst; ok where there is none.
    Grade worst() const;

  private:
    std::vector<Finding> all_;
};

std::string_view name_of(Grade grade);

/// For people: a paragraph each, of lines of at most 80 columns. A word that is longer, as a path, has a line of its
/// own.
std::string as_text(const Findings& findings);
/// {"version": 1, "findings": [{"grade", "name", "seen", "advice"}]}; advice is null where nothing is to be done.
std::string as_json(const Findings& findings);

}  // namespace cuslice::cli::doctor
