// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

// Where in its stack this thread has called the real NVML for us; null if it hasn't. The entrance of NVML's functions
// (shim/nvml/stubs_*.S) looks at it, hence the plain name.
extern "C" __attribute__((visibility("hidden"))) constinit thread_local const void* cuslice_inside_nvml;

namespace cuslice {

// Stands around every call of ours into the real NVML. That library is not linked -Bsymbolic: it calls its own
// functions through their exported names, which are ours. While this lives such a call goes straight on to the real
// function.
//
// What is kept is the place in the stack, and not a mere mark: a call that comes from further up the stack proves that
// the call which set it has been left, be it by a longjmp.
class InsideNvml {
  public:
    // Inlined, so that the place is the caller's, above everything that it calls.
    [[gnu::always_inline]] InsideNvml() : before_(cuslice_inside_nvml) {
        const void* here = static_cast<const char*>(__builtin_frame_address(0)) + kToFrame;
        if (before_ < here)
            cuslice_inside_nvml = here;
    }
    ~InsideNvml() { cuslice_inside_nvml = before_; }
    InsideNvml(const InsideNvml&) = delete;
    InsideNvml& operator=(const InsideNvml&) = delete;

  private:
#if defined(__aarch64__)
    // Here the frame's address is its lower end, where the stack pointer is too, and a call pushes nothing: a function
    // that NVML jumps to would have that very stack pointer. Above it lies the frame's record, two words.
    static constexpr size_t kToFrame = 2 * sizeof(void*);
#else
    static constexpr size_t kToFrame = 0;
#endif
    const void* before_;
};

}  // namespace cuslice
