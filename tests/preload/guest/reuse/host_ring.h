// SPDX-License-Identifier: Apache-2.0
// Host buffers in turn, page-locked or managed, for copies that are still under way. A buffer that was read into is
// looked at before it is used again: every word of it must be the one that was written.
#pragma once

#include <deque>

#include "tests/preload/guest/reuse/check.h"

namespace reuse {

class HostRing {
  public:
    static constexpr size_t kWords = 1024;

    /// In the current context, which is to outlive the ring.
    enum class Memory { locked, managed };
    HostRing(size_t buffers, Memory memory);

    struct Buffer {
        uint32_t* words = nullptr;
        CUevent done = nullptr;  // of the stream that it was used in last
        size_t read = 0;         // so many words are to be `expected` then
        uint32_t expected = 0;
        uint32_t written = 0;  // by a host function, before the copy
        CUdeviceptr at() const { return reinterpret_cast<CUdeviceptr>(words); }
    };
    /// The buffer that was used longest ago, once its copy is done.
    Buffer& take();
    /// Waits for all copies and looks at what they read.
    void finish();

    /// Words that were not what had been written.
    uint64_t wrong() const { return wrong_; }
    uint64_t looked_at() const { return looked_at_; }

  private:
    void look(Buffer& buffer);

    std::deque<Buffer> buffers_;
    size_t next_ = 0;
    uint64_t wrong_ = 0, looked_at_ = 0;
};

}  // namespace reuse
