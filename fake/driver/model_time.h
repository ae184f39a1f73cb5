// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clock that events read: the host's, plus a fixed time for each piece of work that a GPU would do. Skipping a
// kernel takes the host less than a microsecond, which no GPU manages and some programs divide by.

#include <cstdint>

namespace cuslice::fake {

/// Shortest time of a kernel, copy or fill. A model, measured on no GPU.
constexpr uint64_t kModelWorkNanoseconds = 2000;

/// One more piece of work has been done. The pieces of all streams add up: there is one clock, which never goes back.
void spend_model_time();

/// Now, in nanoseconds.
uint64_t model_time();

}  // namespace cuslice::fake
