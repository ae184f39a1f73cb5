// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/entry.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/turns/gate.h"

namespace cuslice {

/// The gate of a function that starts work, where time is shared, from which the call goes on at `behind`. `behind`
/// itself for all others.
void* gate_before(Function function, void* behind);

/// The stream that a function means by this one, which may be null.
template <Function kFunction>
CUstream meant_by(CUstream stream) {
    constexpr bool per_thread = kFunctionRows[static_cast<size_t>(kFunction)].per_thread;
    return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/// Stands around a call that starts work in a stream: begins with the job's turn. Where the stream is being captured
/// the call starts nothing, and goes on.
class GatedLaunch {
  public:
    explicit GatedLaunch(CUstream stream) {
        if (goes_on_at_once() || is_captured(stream))
            return;
        begin();
    }
    ~GatedLaunch() {
        if (waited_)
            process().turns().submitted();
    }
    GatedLaunch(const GatedLaunch&) = delete;
    GatedLaunch& operator=(const GatedLaunch&) = delete;

  private:
    static bool is_captured(CUstream stream);
    void begin();

    bool waited_ = false;
};

/// True of a function's name, as cuGetProcAddress takes it, that looks as if it started work, in a form at this address
/// that isn't listed: a newer driver's, which goes on whosever turn it is.
bool is_unknown_launch(const char* name, const void* real);

}  // namespace cuslice
