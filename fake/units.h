// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cuslice::fake {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB, kTiB = 1024 * kGiB;

}  // namespace cuslice::fake
