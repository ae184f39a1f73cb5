// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "virtual_gpu/gpu/contexts.h"

namespace cuslice {

// Finds the contexts whose work can touch the memory of a context: all on its GPU, and those on other GPUs that have
// peer access to it, or whose GPU has copied from or to this one without that. The driver's own free waits for no
// more, and a program may rely on it: work of an unrelated GPU may be waiting for the thread that frees.
//
// Peer access is asked of the driver at each free; nothing depends on having seen it enabled. Thread-safe.
class Reach {
  public:
    static constexpr size_t kMaxContexts = 64;

    // The contexts whose work can touch `context`'s memory, where `address` lies in a block that has not been given
    // back. Up to `most` of them; returns how many there are, or a number above kMaxContexts if the process has more
    // contexts than that.
    size_t list(Contexts& contexts, CUcontext context, CUdeviceptr address, CUcontext* into, size_t most);

    // GPUs as a set: a bit for each ordinal, and all of them for one that has no bit.
    static constexpr uint64_t bit(CUdevice device) { return device >= 0 && device < 64 ? 1ull << device : ~0ull; }
    // One of these GPUs carries out a copy between memory of the others. Without peer access the driver stages it, and
    // documents no order between that and the work of the memory's own GPU.
    void copied_among(uint64_t gpus);

  private:
    bool can_touch(CUcontext other, CUdevice other_gpu, CUdevice gpu, CUdeviceptr address);
    bool can_have_access(CUdevice from, CUdevice to);

    std::atomic<uint64_t> copied_[64]{};  // for each GPU: those that it has copied with
    // For each GPU: those of which the driver has said that they can, or can never, be given access to its memory.
    std::atomic<uint64_t> able_[64]{}, unable_[64]{};
};

}  // namespace cuslice
