// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reserved members of structures, which have to be zero.

#include <algorithm>
#include <iterator>

namespace cuslice::fake {

template <typename T>
bool all_zero(const T& members) {
    return std::all_of(std::begin(members), std::end(members), [](auto member) { return member == 0; });
}

}  // namespace cuslice::fake
