// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "config/gpu_selector.h"
#include "virtual_gpu/driver/nvml.h"

namespace cuslice {

enum class Reading {
    ok,
    absent,  // NVML answered, and what was asked for is not there
    failed,  // NVML did not answer, which says nothing about the matter
};

// One GPU as reported by NVML, the library behind nvidia-smi. NVML counts what the driver takes by itself, which the
// CUDA API does not show. Readings are of this moment and come from the real NVML, which has to be loaded.
// Thread-safe. Signals that have a handler wait until NVML has answered (HeldSignals): readings are made inside calls
// of CUDA's that the program may leave by siglongjmp.
class NvmlGpu {
  public:
    // Finds the GPU by its UUID. False, and every reading fails, where there is no NVML (a container may leave it out).
    bool open(const char* uuid);
    explicit NvmlGpu(nvmlDevice_t handle = nullptr) : handle_(handle) {}
    nvmlDevice_t handle() const { return handle_; }

    // Bytes that a process holds on the GPU: contexts, modules, allocations. `absent` if the process is not listed, as
    // in a container with pids of its own.
    Reading used_by_process(unsigned pid, uint64_t* bytes) const;

    // Bytes that everybody together holds on the GPU, and all there are, both as CUDA counts them: without what the
    // driver keeps for itself. `failed` where NVML tells no figures (memory that is the host's).
    Reading used_by_all(uint64_t* bytes, uint64_t* total = nullptr) const;

    /// Memory in use on the GPU that NVML lists no process with.
    struct Unlisted {
        uint64_t bytes = 0;
        bool lists_self = false;  // the process that asks is in a list
    };
    /// `pid`: of the process that asks. What is in use less the figures of all processes that compute or draw; one of
    /// which NVML shows no figure counts as nothing. The lists are read before and after what is in use. False where
    /// they can't be had, or differ each time.
    bool unlisted(unsigned pid, Unlisted* now) const;

    // Index in PCI order, which is how nvidia-smi counts, UUID and PCI id; a MIG instance has no index. False if any of
    // them can't be had.
    bool identity(GpuIdentity* identity) const;

    // "NVIDIA H200". False if it can't be had.
    bool name(char* text, unsigned size) const;

  private:
    nvmlDevice_t handle_;
};

// Initialises the loaded NVML, unless that was done; the others here need it. False if it can't be initialised now: it
// is tried again next time. It may take long and start processes (nvidia-modprobe), so no lock may be held.
bool nvml_initialise();
// True once that was done: NVML answers every caller then, also a program that has not initialised it.
bool nvml_initialised();

// The host's GPUs in PCI order; none if there is no NVML. A GPU that MIG divides is not among them; its instances
// are.
class NvmlGpus {
  public:
    static constexpr size_t kMax = 64;

    NvmlGpus();
    std::span<const NvmlGpu> view() const& { return {list_, count_}; }
    std::span<const NvmlGpu> view() const&& = delete;

  private:
    NvmlGpu list_[kMax];
    size_t count_ = 0;
};
// True if all of them have the same name.
bool nvml_one_model();

}  // namespace cuslice
