// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/split/virtual_context.h"

namespace cuslice {

// The current context of the calling thread, as the program sees it. Beneath it a real one is current, as many deep;
// which virtual GPU's it is meant to be is kept here.
struct CurrentVirtual {
    // The one that is current: `context` null and `real` not: a real one that isn't ours. Both null: none. Begins a
    // primary one that the thread uses without having retained it.
    static VirtualContexts::Resolved get();
    // The same without beginning anything: it may have ended.
    static VirtualContexts::Resolved peek();
    // Its handle; null if there is none.
    static CUcontext handle();
    // The virtual GPU; -1 if there is none.
    static int device();

    // All of these call the driver, and leave everything as it is if it refuses.
    static CUresult set(VirtualContexts::Resolved resolved);
    static CUresult push(VirtualContexts::Resolved resolved);
    static CUresult pop(CUcontext* popped);
};

// As a program is to see what only the driver knows, a real context and a physical GPU: the one that this thread means
// by it, if it is one of its parts, else the first part.
CUcontext to_virtual(CUcontext real);
int to_virtual(CUdevice physical);

}  // namespace cuslice
