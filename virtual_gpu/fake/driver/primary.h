#pragma once
// A device's primary context.

#include "virtual_gpu/fake/driver/context.h"

namespace cuslice::fake {

struct Primary {
    Context* context = nullptr;  // made at the first retain, then kept: its handle never changes
    unsigned retained = 0;
    unsigned flags = 0;
};

/// The driver's lock is held.
Primary& primary_of(const Gpu& gpu);

}  // namespace cuslice::fake
