// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/gpu/gpu_state.h"

namespace cuslice {

// A context, or what stands for it, that can't end while this lives.
class Visit {
  public:
    explicit Visit(const void* what, bool takes = false) : inside_(gpu_state().visits.enter(what, takes)) {}
    ~Visit() {
        if (inside_)
            gpu_state().visits.leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    // False if this thread is ending it.
    explicit operator bool() const { return inside_; }

  private:
    bool inside_;
};

// Stands around a call that ends a context, until it is forgotten here.
class ContextEnd {
  public:
    // Null: of nothing.
    explicit ContextEnd(const void* what) : what_(what) {
        if (what_)
            gpu_state().visits.begin_end(what_);
    }
    ~ContextEnd() {
        if (what_)
            gpu_state().visits.finish_end(what_);
    }
    ContextEnd(const ContextEnd&) = delete;
    ContextEnd& operator=(const ContextEnd&) = delete;

  private:
    const void* what_;
};

}  // namespace cuslice
