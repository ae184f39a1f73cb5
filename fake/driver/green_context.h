// SPDX-License-Identifier: Apache-2.0
#pragma once
// Green contexts: a part of a GPU's multiprocessors, with streams of its own, in the device's primary context, which
// each of them retains. Memory, modules and events are the primary context's. Each is charged like a context here, so
// that nothing fits by mistake; on an H200 two of them took 10 MiB together (docs/results/).

#include "fake/driver/context.h"

namespace cuslice::fake {

struct Green {
    Gpu* gpu = nullptr;
    Context* name = nullptr;  // what cuCtxFromGreenCtx gives
    unsigned multiprocessors = 0;
    bool charged = true;  // false once the primary context was reset under it
};

/// Makes one in a primary context that the caller has retained for it, and charges it. The driver's lock is held.
CUresult create_green(Context& primary, unsigned multiprocessors, CUgreenCtx& out);
/// Ends a live handle and gives back what it cost. The driver's lock is held.
void destroy_green(CUgreenCtx handle);
/// The green contexts of a primary context that ends are of no use any more. The driver's lock is held.
void end_greens(const Context& primary);

Green* find_green(CUgreenCtx handle);
/// True if its primary context is still the one that it was made in.
bool live_green(CUgreenCtx handle);
/// The context that cuCtxFromGreenCtx returns, or null if the handle is of no live green context.
Context* name_of_green(CUgreenCtx handle);

}  // namespace cuslice::fake
