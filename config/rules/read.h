// SPDX-License-Identifier: Apache-2.0
// Reads rules from the tables and keys of a file.
#pragma once

#include <cstddef>
#include <string_view>

#include "config/config_error.h"
#include "config/rules/rule.h"
#include "config/toml/reader.h"

namespace cuslice::rules {

/// The names of all rules so far, over all files.
class Names {
  public:
    static constexpr size_t kMax = 512;
    /// False, with the reason, if there is one of that name, or too many.
    bool add(std::string_view name, Reason& why);

  private:
    FixedText<Rule::kMaxName + 1> names_[kMax];
    size_t count_ = 0;
};

/// Called with each rule in the order of the file; false ends the reading.
using OnRule = bool (*)(void* context, const Rule& rule, ConfigError& error);

/// Reads the text of one file. `rule` is the space that it is read in. False with `error` filled if anything in it is
/// wrong; rules before that have been given to `on_rule`.
bool read_rules(std::string_view text, std::string_view path, cuslice_toml_parse_function* parse, Names& names,
                Rule& rule, OnRule on_rule, void* context, ConfigError& error);

}  // namespace cuslice::rules
