// SPDX-License-Identifier: Apache-2.0
// JSON that the launcher prints for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cuslice::cli {

/// Keeps the fields in the order in which they are written.
using Json = nlohmann::ordered_json;

/// `value` as lines of text. Bytes that are not UTF-8, as a path may have, become U+FFFD, since JSON has no other text.
inline std::string json_text(const Json& value) {
    return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cuslice::cli
