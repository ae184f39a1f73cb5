// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/page_vector.h"
#include "policy/budget/allocation_table.h"
#include "shim/process/process.h"

namespace cuslice {

/// A context that is about to end, or has. Its allocations are out of the table while this lives, so that nobody else's
/// at the same address is taken for one of them. Within a ContextEnd.
class EndingContext {
  public:
    /// `gpu` may be null, and `context` too, where nothing is known of them. A release is in flight in the budget of a
    /// GPU that is limited, until one of the next two is called.
    EndingContext(Process& process, VirtualGpu* gpu, CUcontext context);
    ~EndingContext() { allocations_.release(); }
    EndingContext(const EndingContext&) = delete;
    EndingContext& operator=(const EndingContext&) = delete;

    /// It has ended: everything that was in it is released, and it is forgotten.
    void ended();
    /// It lives on: its allocations are written down again.
    void lives_on();

  private:
    static void take(const Allocation& allocation, void* self);
    void free_left_memory();

    Process& process_;
    VirtualGpu* gpu_;
    bool counts_;
    CUcontext context_;
    uint64_t bytes_ = 0, managed_ = 0;
    PageVector<Allocation> allocations_;
};

}  // namespace cuslice
