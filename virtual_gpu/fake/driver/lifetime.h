#pragma once
// What ends with a context, and waiting for all that runs in it.

#include "virtual_gpu/fake/driver/context.h"

namespace cuslice::fake {

/// Waits for the context's streams and ends its streams, events, modules and functions. The driver's lock is held.
void end_owned_by(Context& context);

/// Waits for everything that runs in the context and lets its pools shrink.
CUresult synchronize_context(Context& context);

/// After a stream of the GPU was waited for: its pools may shrink.
void stream_synchronized(Gpu& gpu);

}  // namespace cuslice::fake
