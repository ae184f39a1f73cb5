// SPDX-License-Identifier: Apache-2.0
// Values of JSON that another machine has written, and that may be anything. Each function throws an exception of the
// standard library if a value is not what is asked for.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/text/json.h"

namespace cuslice::cli {

uint64_t read_number(const Json& value);
/// Nothing for null.
std::optional<uint64_t> read_number_or_null(const Json& value);
/// Cut off at 256 bytes: none of ours is longer, and a frame has no room for one that is.
std::string read_text(const Json& value);
/// The words of a command line, null being none: as much of it as is read of one's own processes.
std::vector<std::string> read_words(const Json& value);
/// The time that was so many seconds ago, in nanoseconds of CLOCK_REALTIME.
uint64_t read_time_ago(const Json& value);
/// `value` itself, which is a list.
const Json& read_list(const Json& value);

/// A number that `Number` can hold.
template <typename Number>
Number read_small_number(const Json& value) {
    const uint64_t number = read_number(value);
    if (number > static_cast<uint64_t>(std::numeric_limits<Number>::max()))
        throw std::out_of_range("number");
    return static_cast<Number>(number);
}

}  // namespace cuslice::cli
