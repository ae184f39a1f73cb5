// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

namespace cuslice::fake {

/// The value that begins there, wherever that is: `data` needs no alignment.
template <typename T>
T value_at(const unsigned char* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

}  // namespace cuslice::fake
