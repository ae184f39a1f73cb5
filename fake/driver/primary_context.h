// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device's primary context.

#include "fake/driver/context.h"

namespace cuslice::fake {

struct Primary {
    Context* context = nullptr;  // made at the first retain, then kept: its handle never changes
    unsigned retained = 0;
    unsigned flags = 0;
};

/// The driver's lock is held.
Primary& primary_of(const Gpu& gpu);
/// One use of it more, or less: the last one ends it. The driver's lock is held.
CUresult retain_primary(Gpu& gpu, Context*& context);
CUresult release_primary(const Gpu& gpu);
/// Waits for what runs in the primary context before it ends; `last` only if this release is the one that ends it.
/// Without the driver's lock.
void drain_primary(const Gpu& gpu, bool last);

}  // namespace cuslice::fake
