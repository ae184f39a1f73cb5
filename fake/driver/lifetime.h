// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ends a context with all that belongs to it, and waits for all that runs in it.

#include "fake/driver/context.h"

namespace cuslice::fake {

/// Waits for all work in the context's streams. Without the driver's lock, which that work may need.
void drain_streams(Context& context);

/// Ends what a context owns (its streams, events, modules, arrays and host memory) and releases what it cost; a primary
/// context keeps its handle. The driver's lock is held and its streams are drained.
void end_context(Context& context);

/// Waits for everything that runs in the context and lets its pools shrink.
CUresult synchronize_context(Context& context);

/// After a stream of the GPU was waited for: its pools may shrink.
void stream_synchronized(Gpu& gpu);

}  // namespace cuslice::fake
