// SPDX-License-Identifier: Apache-2.0
// A value that can't hold.
#pragma once

#include <string_view>

#include "config/text.h"

namespace cuslice {

/// Says in `why` what is wrong. Returns false, so that a parser can `return refuse(…)`.
inline bool refuse(std::string_view reason, Reason& why) {
    why.assign(reason);
    return false;
}

}  // namespace cuslice
