// SPDX-License-Identifier: Apache-2.0
// Values of settings, checked by their type.
#pragma once

#include <cstdint>
#include <string_view>

#include "config/key.h"

namespace cuslice {

/// Number of `--wait` without a time, and of any other yes.
inline constexpr uint64_t kForEver = ~0ull;

/// Reads a value as a setting needs it, or says in `why` what is needed. Pure. `number` becomes, by the setting's type:
///   limit, size            bytes
///   fraction               parts of Fraction::kWhole
///   count                  the number
///   percent                the same
///   switch_                kForEver for yes, 0 for no
///   duration               milliseconds, or 0 for a word
///   switch_or_duration     milliseconds, kForEver or 0
///   choice                 the word's place among the row's words
///   split                  how many equal partitions, 0 for sizes
///   any other              0
/// `automatic`: the size is the word `auto`.
bool parse_value(const KeyTraits& traits, std::string_view text, uint64_t& number, bool& automatic, Reason& why);
bool parse_value(Key key, std::string_view text, uint64_t& number, bool& automatic, Reason& why);

/// "direct, growth or prealloc", of the row's words. For refusals.
void append_words(const KeyTraits& traits, Reason& to);

/// True if a file may have it without quotes, as a number.
constexpr bool may_be_number(const KeyTraits& traits) { return traits.per_gpu || traits.type == ValueType::count; }

}  // namespace cuslice
