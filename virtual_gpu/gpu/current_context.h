// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/gpu/visit.h"

namespace cuslice {

// True if `context` is this thread's current one, which is the program's to keep alive.
bool is_own(CUcontext context);

// Makes a context current for a while, in whatever thread asks, and keeps it from ending meanwhile. Waits where another
// thread is just ending it.
class CurrentContext {
  public:
    // `known`: one of GpuState::contexts, so that one which has ended isn't put to the driver. `takes`: see Visits.
    enum class Of { any, known };
    explicit CurrentContext(CUcontext context, Of of = Of::any, bool takes = false);
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

    // False if it is no context any more.
    explicit operator bool() const { return is_current_; }

  private:
    std::optional<Visit> visit_;
    PushedContext pushed_;  // popped before the visit ends
    bool is_current_ = false;
};

// The same for calls that are given the context: it need not be current.
class NamedContext {
  public:
    explicit NamedContext(CUcontext context);
    NamedContext(const NamedContext&) = delete;
    NamedContext& operator=(const NamedContext&) = delete;

    explicit operator bool() const { return is_there_; }
    // False if it is this thread's own current context, which needs no pin.
    bool visiting() const { return visit_.has_value(); }

  private:
    std::optional<Visit> visit_;
    bool is_there_ = false;
};

}  // namespace cuslice
