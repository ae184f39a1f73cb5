// Text as JSON has it.
#pragma once

#include <string>
#include <string_view>

namespace cuslice::cli {

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD, since JSON has no other text.
std::string json_string(std::string_view text);

}  // namespace cuslice::cli
