// SPDX-License-Identifier: Apache-2.0
// Two GPUs of a made-up driver, whose primary contexts are used by many.
#pragma once

#include <memory>

#include "tests/virtual_gpu/interleave/made_up_gpu.h"

namespace cuslice::tests {

/// The primary context of a physical GPU, whenever it is alive.
inline CUcontext real_of(CUdevice physical) { return context(0x900 + static_cast<uintptr_t>(physical)); }

/// As long as it lives, the driver has primary contexts, and streams and pools that programs make in them and that end
/// with them. A stream has the lowest handle that is free, so that handles come again; a pool a new one.
///
/// Further faults of the driver's: a use that is given up and that nobody has, a stream that is destroyed twice, memory
/// of a pool that has ended, and a context that has ended and is made current.
class MadeUpPrimaries {
  public:
    static constexpr int kGpus = 2;
    MadeUpPrimaries();
    ~MadeUpPrimaries();
    MadeUpPrimaries(const MadeUpPrimaries&) = delete;
    MadeUpPrimaries& operator=(const MadeUpPrimaries&) = delete;

    unsigned uses(CUdevice physical) const;
    /// Streams that are there.
    size_t streams() const;

    struct State;  // its own

  private:
    std::unique_ptr<State> state_;
};

}  // namespace cuslice::tests
