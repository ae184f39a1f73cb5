// SPDX-License-Identifier: Apache-2.0
// A driver and its GPU, made up for threads that meet (tests/interleave/).
#pragma once

#include <cstdint>
#include <memory>

#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice::tests {

inline CUcontext context(uintptr_t number) { return reinterpret_cast<CUcontext>(number << 4); }
inline CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>((0x1000 + number) << 4); }

/// As long as it lives, the driver's functions are those of this one. A call of them is one step, and another thread
/// may go on before and after it. Memory is handed out at the lowest address that is free, so that addresses come
/// again. The GPU comes past its work where the driver waits for that, and in pass().
///
/// The first fault is kept. Faults are a call in a context that has ended, an event or a stream that is no more, memory
/// freed twice or while the program has a block in it, more memory than the limit, a call that ends a capture, a
/// context that ends while a thread is in it, and a block that somebody has, or that work of the GPU's may still touch.
class MadeUpGpu {
  public:
    /// Modes of captures, which drivers before CUDA 10.1 lack.
    enum class Modes : bool { none, some };
    MadeUpGpu(uint64_t limit, Modes modes);
    ~MadeUpGpu();
    MadeUpGpu(const MadeUpGpu&) = delete;
    MadeUpGpu& operator=(const MadeUpGpu&) = delete;

    /// Empty: there was none.
    const char* fault() const;
    /// Bytes of the GPU's memory that are in use, and of these what the driver has taken by itself. NVML shows all of
    /// them for this process.
    uint64_t held() const;
    uint64_t own() const;
    /// The driver takes more by itself, or gives it back.
    void take(int64_t bytes);

    /// The only context on this thread's stack; null: there is none.
    static void set_current(CUcontext context);
    void make_context(CUcontext context);
    /// With its memory, its events, its work and the program's blocks.
    void end_context(CUcontext context);

    /// Work of a context that touches a block.
    void launch(CUcontext context, CUdeviceptr block, uint64_t bytes);
    /// The GPU comes past all that it was given.
    void pass();

    void make_stream(CUstream stream, CUcontext context);
    void destroy_stream(CUstream stream);
    void begin_capture(CUstream stream);
    void end_capture(CUstream stream);

    /// The program has a block, or has it no more.
    void hand_out(CUdeviceptr block, uint64_t bytes);
    void take_back(CUdeviceptr block);

    struct State;  // its own

  private:
    std::unique_ptr<State> state_;
};

}  // namespace cuslice::tests
