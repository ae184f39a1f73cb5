// SPDX-License-Identifier: Apache-2.0
// The names by which lines of the log call a GPU, and lines that are said once for each.
#pragma once
#include <atomic>

#include "shim/log.h"
#include "shim/process/process.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// The first of each for a GPU, however many threads come at once.
class OncePerGpu {
  public:
    bool first(const VirtualGpu& gpu) { return !said_[gpu.ordinal()].exchange(true, std::memory_order_relaxed); }

  private:
    std::atomic<bool> said_[Process::kMaxGpus]{};
};

// As nvidia-smi counts; -1 where NVML does not know the GPU. The settings may not have needed it so far; a line for a
// person is worth asking NVML.
int index_of(const VirtualGpu& gpu);

// "GPU 0 (NVIDIA H200)", and of a partition, as the program counts, "virtual GPU 2 (partition 3 of 4 of GPU 0, NVIDIA
// H200)".
LogLine& append_gpu(LogLine& line, const VirtualGpu& gpu);

// "virtual 0 → physical 3, GPU-5f…, NVIDIA H200, 0000:81:00.0"
LogLine& append_identity(LogLine& line, const VirtualGpu& gpu);

// Says a line about a GPU, which begins with its name, once. A frame of its own: there are programs with small stacks.
template <typename... Parts>
[[gnu::noinline]] void say_once(OncePerGpu& said, const VirtualGpu& gpu, LogLevel level, const Parts&... parts) {
    if (!said.first(gpu))
        return;
    LogLine line;
    log_line(level, append_gpu(line, gpu).append(parts...));
}

}  // namespace cuslice
