// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/gpu/visit.h"

namespace cuslice {

// True if `context` is this thread's current one, which is the program's to keep alive.
bool is_own(CUcontext context);

// A context in whatever thread asks, kept from ending meanwhile. Waits where another thread is just ending it.
class NamedContext {
  public:
    // `known`: one of GpuState::contexts, so that one which has ended isn't put to the driver. `takes`: see Visits.
    enum class Of { any, known };
    explicit NamedContext(CUcontext context, Of of = Of::known, bool takes = false)
        : is_own_(is_own(context)), is_there_(is_own_) {
        if (!is_own_ || takes)
            visit(context, of, takes);
    }
    NamedContext(const NamedContext&) = delete;
    NamedContext& operator=(const NamedContext&) = delete;

    // False if it is no context any more.
    explicit operator bool() const { return is_there_; }
    // False if it is this thread's own current context, which needs no pin.
    bool visiting() const { return visit_.has_value(); }
    bool is_current() const { return is_own_; }

  private:
    void visit(CUcontext context, Of of, bool takes);

    std::optional<Visit> visit_;
    bool is_own_, is_there_;
};

// The same, and current in this thread.
class CurrentContext {
  public:
    using Of = NamedContext::Of;
    explicit CurrentContext(CUcontext context, Of of = Of::known, bool takes = false)
        : named_(context, of, takes), is_current_(named_ && (named_.is_current() || pushed_.push(context))) {}

    explicit operator bool() const { return is_current_; }

  private:
    NamedContext named_;
    PushedContext pushed_;  // popped before the visit ends
    bool is_current_;
};

}  // namespace cuslice
