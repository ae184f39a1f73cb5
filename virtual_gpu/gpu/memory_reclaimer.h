// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

struct ContextCache;
class VirtualGpu;

// Gives memory back that is charged to a GPU and that the program does not use: what the caching allocators keep. A GPU
// asks it before it refuses a reservation. Thread-safe.
//
// The functions have bodies, as a pure one would need the C++ library at run time.
class MemoryReclaimer {
  public:
    // Gives back at least `bytes` of what is cached on this GPU, if there is so much, but nothing of `except`. Returns
    // how many bytes it was.
    virtual uint64_t trim(VirtualGpu&, uint64_t /*bytes*/, const ContextCache* /*except*/ = nullptr) { return 0; }
    // Takes again what a GPU's preallocation had to give back, as far as there is room.
    virtual void top_up(VirtualGpu&) {}
    // Bytes on this GPU that are charged and that the program could have.
    virtual uint64_t unused(const VirtualGpu&) const { return 0; }

  protected:
    ~MemoryReclaimer() = default;
};

}  // namespace cuslice
