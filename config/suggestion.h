// SPDX-License-Identifier: Apache-2.0
// The probable meaning of a value that is refused.
#pragma once

#include <string_view>

#include "config/key.h"

namespace cuslice {

/// True if `key` takes `value`.
using Takes = bool(Key key, std::string_view value);

struct Refused {
    Key key;
    std::string_view value;
    /// As written; empty for every GPU.
    std::string_view gpu;
    Spelling spelling;
    Takes* takes;
};

/// Changes `why`, for which a value isn't taken, to name what was probably meant, as such a setting is spelled; leaves
/// it where nothing better is known.
void suggest(const Refused& refused, Reason& why);

/// True if `text`, a list of values for several GPUs, begins with one that has a decimal comma; `value` then is that
/// value: 1,5GiB.
bool begins_with_decimal_comma(Key key, Takes* takes, std::string_view text, std::string_view& value);

/// "the decimal mark is a point: did you mean 1.5GiB".
void suggest_point(std::string_view value, Reason& why);

}  // namespace cuslice
