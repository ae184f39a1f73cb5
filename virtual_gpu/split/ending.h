#pragma once
#include "virtual_gpu/split/contexts.h"

namespace cuslice {

// Over which contexts live: each that does holds its real one once. Held over calls of the driver, so that none begins
// while the last one ends.
Mutex& lifetimes_mutex();

// The end of a context whose real one lives on: waits for its work, and destroys what was made in it. Memory is left
// to whoever counts it (take_left_memory).
void end_what_was_made(const VirtualContext& context);

// Makes the real context current that a virtual one stands for, or has stood for.
class RealContextOf {
  public:
    explicit RealContextOf(CUcontext handle);
    ~RealContextOf();
    RealContextOf(const RealContextOf&) = delete;
    RealContextOf& operator=(const RealContextOf&) = delete;

  private:
    bool pushed_ = false;
};

// Whether this thread's last call that ended a context has left its memory to be freed. Asked once after each.
bool take_left_memory();
void leave_memory(bool left);

}  // namespace cuslice
