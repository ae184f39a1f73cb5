#pragma once
#include <cstdint>
#include <span>

#include "policy/budget.h"
#include "policy/in_flight.h"
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
    static constexpr std::size_t kMostParts = 64;
    using FreeMemory = bool (*)(std::uint64_t* free, std::uint64_t* total);

    // The budget that the driver's part is charged to, and those of other parts of the same GPU: what the driver says
    // is of all of them together.
    struct Budgets {
        Budgets(Budget& charged, std::span<const Budget* const> of_others = {}) : own(charged), others(of_others) {}
        std::uint64_t used() const {
            std::uint64_t bytes = own.used();
            for (const Budget* other : others) bytes += other->used();
            return bytes;
        }
        Budget& own;
        std::span<const Budget* const> others;
    };

    struct Step {
        bool known = false;         // the GPU's use before the call is known
        std::uint64_t used = 0;     // by everybody, before the call
        std::uint64_t counted = 0;  // by us, before the call
    };

    // `frees`: those that the driver may have carried out and the budget doesn't show yet.
    void open(const char* uuid, unsigned pid, FreeMemory free_memory, std::uint64_t first_context_at_most,
              const InFlight& frees);

    Step before(const Budgets& budgets);

    // `unsure`: how much of what is charged may not be on the GPU at the moment (managed memory, which the driver
    // moves).
    void after(const Step& step, std::uint64_t unsure, const Budgets& budgets);

    // Reads the process's figure again, where there is one. Without one nothing changes. False if it was read and could
    // not be compared, since something was in flight all the time.
    bool refresh(std::uint64_t unsure, const Budgets& budgets);

    // Memory that was counted by itself is on its way back to the driver, which has it at a time of its own
    // (cuMemFreeAsync of cuMemAlloc's memory). Until the next reading it is the driver's part. False where nothing will
    // be read: not charged then.
    bool takes_over(std::uint64_t bytes) {
        if (source_ != Source::process) return false;
        bytes_ += bytes;
        taken_over_ += bytes;
        return true;
    }

    std::uint64_t bytes() const { return bytes_; }
    bool exact() const { return source_ == Source::process; }

  private:
    enum class Source { undecided, process, steps };

    bool used_by_all(std::uint64_t* bytes) const;
    Reading read_process(std::uint64_t unsure, const Budgets& budgets, bool* compared = nullptr);
    void set(std::uint64_t bytes, Budget& budget);

    NvmlGpu nvml_;
    FreeMemory free_memory_ = nullptr;
    const InFlight* frees_ = nullptr;
    Source source_ = Source::undecided;
    unsigned pid_ = 0;
    std::uint64_t first_context_at_most_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t taken_over_ = 0;  // since the last reading: of these it is believed that they are gone
};

}  // namespace cuslice
