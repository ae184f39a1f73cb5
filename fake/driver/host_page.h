// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cuslice::fake {

/// Bytes of a page of the host's memory, as managed and pinned memory are counted by.
constexpr uint64_t kHostPage = 4096;

}  // namespace cuslice::fake
