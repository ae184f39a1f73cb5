#pragma once

#include <string>

namespace cuslice::cli {

/// The user's name, or the number where nobody has it. Not thread-safe.
std::string user_name(unsigned user);

}  // namespace cuslice::cli
