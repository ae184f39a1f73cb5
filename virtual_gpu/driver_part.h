#pragma once
#include <cstdint>
#include <span>

#include "policy/budget.h"
#include "policy/in_flight.h"
#include "policy/mutex.h"
#include "virtual_gpu/nvml.h"

namespace cuslice {

// What the driver takes on one GPU without an allocation asking for it: contexts, modules, local memory. It is charged
// to the same budget as the allocations are, so that the limit is on what nvidia-smi shows.
//
// Where NVML has a figure for this process, the driver's part is that figure less everything else that is charged:
// exact, and readable at any moment. Otherwise it is the sum of the steps that the GPU's free memory makes around the
// calls in which the driver takes memory; other processes can blur such a step, nothing better is to be had there.
//
// Thread-safe once open. The lock is held while what was read takes effect, and never while NVML or the driver is
// asked.
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

    // `pid`: under which NVML lists this process; 0 if that isn't known (own_pid.h). `frees`: those that the driver may
    // have carried out and the budget doesn't show yet. `mutex`: over what is known, here and in others of the same
    // GPU.
    void open(const NvmlGpu& nvml, unsigned pid, FreeMemory free_memory, std::uint64_t first_context_at_most,
              const InFlight& frees, Mutex& mutex);

    Step before(const Budgets& budgets);

    // What a reading has to know. `unsure`: how much of what is charged may not be on the GPU at the moment (managed
    // memory, which the driver moves). `alive`: a context of this process is there, so that NVML's silence about the
    // process doesn't mean that it holds nothing.
    struct State {
        std::uint64_t unsure = 0;  // bytes
        bool alive = false;
        std::uint64_t of_others = 0;  // bytes on this GPU that are known to be other processes'
    };

    void after(const Step& step, const State& state, const Budgets& budgets);

    // A context of this process is current, and nobody saw how it came: all that it may have taken is charged. Where
    // NVML has no figure for the process that is what has come to be in use since the last look, or at the first look
    // all that isn't known to be others', up to what a context can plausibly take.
    void meet(const State& state, const Budgets& budgets);

    // Reads the process's figure again, where there is one. Without one nothing changes. False if it was read and could
    // not be compared, since something was in flight all the time.
    bool refresh(const State& state, const Budgets& budgets);

    // Memory that was counted by itself is on its way back to the driver, which has it at a time of its own
    // (cuMemFreeAsync of cuMemAlloc's memory). Until the next reading it is the driver's part. False where nothing will
    // be read: not charged then. With the lock held.
    bool takes_over(std::uint64_t bytes) {
        if (!exact()) return false;
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
        taken_over_ += bytes;
        return true;
    }

    std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    bool exact() const { return source_.load(std::memory_order_relaxed) == Source::process; }

  private:
    // From `steps` it can become `process` as soon as NVML lists this process. Never the other way.
    enum class Source { steps, process };

    // What everybody holds on the GPU, and what of it we have counted, apart from the driver's part.
    struct Look {
        bool known = false;
        std::uint64_t used = 0, counted = 0;
    };

    bool used_by_all(std::uint64_t* bytes) const;
    Look look(const Budgets& budgets) const;
    bool read_process(const State& state, const Budgets& budgets, bool* compared = nullptr);
    void meet_by_steps(const State& state, const Budgets& budgets);
    void set(std::uint64_t bytes, Budget& budget);

    NvmlGpu nvml_;
    FreeMemory free_memory_ = nullptr;
    const InFlight* frees_ = nullptr;
    Mutex* mutex_ = nullptr;
    std::atomic<Source> source_{Source::steps};
    unsigned pid_ = 0;
    Look last_;
    std::uint64_t first_context_at_most_ = 0;
    std::atomic<std::uint64_t> bytes_{0};
    std::uint64_t taken_over_ = 0;  // since the last reading: of these it is believed that they are gone
};

}  // namespace cuslice
