#pragma once
#include <cstdint>

#include "policy/budget.h"
#include "virtual_gpu/nvml.h"

namespace cuslice {

// What the driver takes on one GPU without an allocation asking for it: contexts, modules, local memory. It is charged
// to the same budget as the allocations are, so that the limit is on what nvidia-smi shows.
//
// Where NVML has a figure for this process, the driver's part is that figure less everything else that is charged:
// exact, and readable at any moment. Otherwise it is the sum of the steps that the GPU's free memory makes around the
// calls in which the driver takes memory; other processes can blur such a step, nothing better is to be had there.
//
// Not thread-safe by itself: the virtual GPU serialises.
class DriverPart {
  public:
    // Free memory as the CUDA API shows it, for where there is no NVML; false while no context is current.
    using FreeMemory = bool (*)(std::uint64_t* free, std::uint64_t* total);

    struct Step {
        bool known = false;         // the GPU's use before the call is known
        std::uint64_t used = 0;     // by everybody, before the call
        std::uint64_t counted = 0;  // by us, before the call
    };

    void open(const char* uuid, unsigned pid, FreeMemory free_memory, std::uint64_t first_context_at_most);

    Step before(const Budget& budget);

    // `unsure`: how much of what is charged may not be on the GPU at the moment (managed memory, which the driver
    // moves).
    void after(const Step& step, std::uint64_t unsure, Budget& budget);

    // Reads the process's figure again, where there is one. Without one nothing changes.
    void refresh(std::uint64_t unsure, Budget& budget);

    std::uint64_t bytes() const { return bytes_; }
    bool exact() const { return source_ == Source::process; }

  private:
    enum class Source { undecided, process, steps };

    bool used_by_all(std::uint64_t* bytes) const;
    void set(std::uint64_t bytes, Budget& budget);

    NvmlGpu nvml_;
    FreeMemory free_memory_ = nullptr;
    Source source_ = Source::undecided;
    unsigned pid_ = 0;
    std::uint64_t first_context_at_most_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace cuslice
