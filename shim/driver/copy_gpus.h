// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include "shim/entry.h"

namespace cuslice {

// While a copy or a memset is looked at: of which GPUs the cached memory is that it names, and which GPU carries it
// out. Where these are several, a free of any of that memory waits for all of them from now on (Reach). Costs two looks
// where the process has one context.
class CopyGpus {
  public:
    // `stream`: what the function is given, null if that is none.
    explicit CopyGpus(CUstream stream) {
        if (!gpu_state().contexts.sole()) [[unlikely]]
            noted = carrying_out(stream);
    }
    ~CopyGpus() {
        if (!noted) [[likely]]
            return;
        if (noted & (noted - 1))
            process().caches().reach().copied_among(noted);
        noted = 0;
    }
    CopyGpus(const CopyGpus&) = delete;
    CopyGpus& operator=(const CopyGpus&) = delete;

    // It names this address.
    static void note(CUdeviceptr address) {
        if (noted) [[unlikely]]
            noted |= gpu_of(address);
    }

  private:
    static uint64_t carrying_out(CUstream stream);
    static uint64_t gpu_of(CUdeviceptr address);

    // Sets as Reach has them; 0: there is nothing to note.
    static constinit thread_local uint64_t noted;
};

// The last of a function's arguments that is a stream; null if none is.
template <typename... Arguments>
CUstream stream_among(Arguments... arguments) {
    CUstream stream = nullptr;
    const auto look = [&](auto argument) {
        if constexpr (std::is_same_v<decltype(argument), CUstream>)
            stream = argument;
    };
    (look(arguments), ...);
    return stream;
}

}  // namespace cuslice
