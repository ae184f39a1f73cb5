// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace cuslice::fake {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB, kTiB = 1024 * kGiB;

/// The least multiple of the unit that isn't less.
template <typename Number>
constexpr Number round_up(Number number, std::type_identity_t<Number> unit) {
    return (number + unit - 1) / unit * unit;
}

}  // namespace cuslice::fake
