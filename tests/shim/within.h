// SPDX-License-Identifier: Apache-2.0
// The preloaded library's own objects in the test's own process, where the calls of a program are looked at from
// within: fake GPUs, each with a limit of 1 GiB.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shim/process/process.h"
#include "tests/catch.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice::tests {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// A cache for each context, and a recording.
inline const Variables kCached = {{"CUSLICE_ALLOCATOR", "growth"}, {"CUSLICE_RECORD", "rows.csv"}};

/// A process is set up once, by the first of these in it; CTest gives each case a process of its own. Where a case runs
/// after one with other settings, it is skipped, and this is false.
struct Within {
    /// The variables are set on top of what all have; a file's name lies in a folder of the test's. `gpus`: what the
    /// fake driver has, by a name or as a file says it.
    explicit Within(const Variables& settings = {}, const std::string& gpus = "8xt4");
    explicit operator bool() const { return fits_; }

    /// A context of this GPU, current in this thread.
    static CUcontext use(CUdevice device);
    static CUdeviceptr allocate(size_t bytes);
    /// Bytes charged to a GPU.
    static uint64_t used(int gpu) { return process().gpu(gpu).budget().used(); }
    /// Lines logged since the last call, each without its prefix.
    static std::vector<std::string> said();

  private:
    bool fits_ = false;
};

/// While it lives, the driver has this function at another address.
struct Instead {
    Instead(Function function, const void* address)
        : slot_(cuslice_driver_slots[static_cast<size_t>(function)]), before_(driver_slot(function)) {
        slot_ = const_cast<void*>(address);
    }
    template <typename Answer, typename... Arguments>
    Instead(Function function, Answer (*now)(Arguments...)) : Instead(function, reinterpret_cast<const void*>(now)) {}
    ~Instead() { slot_ = before_; }
    Instead(const Instead&) = delete;
    Instead& operator=(const Instead&) = delete;

    /// The driver's own.
    void* before() const { return before_; }

  private:
    void*& slot_;
    void* const before_;
};

}  // namespace cuslice::tests
