// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of one process's managed memory is on a GPU, and how much is the host's.
//
// A GPU that the host and it may touch memory of at the same time can have more managed memory than it has room for:
// pages lie on the GPU as far as there is room, and give way to memory that can lie nowhere else. Nothing runs here, so
// that nobody knows which pages a kernel would have touched last: bytes are counted, not pages. They lie on the GPU
// whenever there is room at an allocation; what had to leave comes back in place of managed memory that is freed.

#include <cstdint>

#include "fake/books/books.h"

namespace cuslice::fake {

class ManagedMemory {
  public:
    // With the GPU's lock held. Bytes are as they are charged.

    /// Charges so much of it as the GPU has room for. The rest is the host's, if `may_exceed`, and if the host has
    /// memory for it beside that of the other GPUs. False: it fits nowhere, and nothing has changed.
    bool take(Books& books, uint64_t bytes, bool may_exceed);
    void give_back(Books& books, uint64_t bytes);
    /// Moves so much to the host that this many bytes could be charged; false if that is more than there is, or more
    /// than the host has memory for.
    bool make_room(Books& books, uint64_t bytes);

  private:
    uint64_t total_ = 0, resident_ = 0;
};

}  // namespace cuslice::fake
