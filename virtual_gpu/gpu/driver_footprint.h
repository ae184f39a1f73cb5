// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "policy/base/mutex.h"
#include "policy/budget/budget.h"
#include "policy/budget/in_flight.h"
#include "virtual_gpu/gpu/unlisted_memory.h"
#include "virtual_gpu/nvml/nvml_gpu.h"

namespace cuslice {

// Memory that the driver takes on one GPU without an allocation asking for it: contexts, modules, local memory. It is
// charged to the same budget as the allocations are, so that the limit is on the figure that nvidia-smi shows.
// Partitions of one GPU have one footprint, as they share its context, and each of them is charged its share of it.
//
// Where NVML has a figure for this process, the driver's footprint is that figure less everything else that is charged:
// exact, and readable at any moment. Otherwise it is the sum of the steps that the GPU's free memory makes around the
// calls in which the driver takes memory; other processes can blur such a step, nothing better is to be had there.
//
// Steps are taken of "the rest": what everybody holds on the GPU, less what we have counted by itself. It is read only
// at moments when nothing of ours is under way, and every change of it while a step is under way is the driver's
// footprint, once, however many steps overlap. Where no such moment is found at a step's end, the step stays open until
// one is.
//
// Thread-safe once open. The lock is held while what was read takes effect, and never while NVML or the driver is
// asked.
class DriverFootprint {
  public:
    // Free memory as the CUDA API shows it, for where there is no NVML; false while no context is current.
    using FreeMemory = bool (*)(uint64_t* free, uint64_t* total);

    static constexpr size_t kMaxShares = 64;

    // A budget, and how much of the footprint is charged to it: from where the share before it ends to `end`, in
    // 65536ths of all.
    struct Share {
        static constexpr uint64_t kWhole = 65536;
        Budget* budget = nullptr;
        uint64_t end = kWhole;

        // Bytes of a footprint of `bytes` up to the end of this share. Of all shares together that is all of it.
        uint64_t up_to(uint64_t bytes) const {
            return Budget::charged(bytes) / Budget::kUnit * end / kWhole * Budget::kUnit;
        }
    };

    // The budgets of all partitions of the GPU; the last share ends at kWhole. `reread`: charges what memory pools
    // hold now, which shrinks where no hook is. The shares stay where they are for as long as a step is open.
    struct Budgets {
        std::span<const Share> shares;
        void (*reread)(void* self) = nullptr;
        void* self = nullptr;
    };

    // A call in which the driver may take or give back memory. Ends with after(), or, where the call failed, by itself:
    // then what was foreseen for it is no longer charged.
    class Step {
      public:
        Step() = default;
        Step(Step&& other) noexcept { *this = std::move(other); }
        Step& operator=(Step&& other) noexcept {
            close();
            part_ = std::exchange(other.part_, nullptr);
            shares_ = other.shares_;
            foreseen_ = other.foreseen_;
            before_ = other.before_;
            count_ = other.count_;
            open_ = other.open_;
            known_ = other.known_;
            makes_context_ = other.makes_context_;
            return *this;
        }
        ~Step() { close(); }

        // True if the rest could be read before the call.
        bool known() const { return known_; }

      private:
        friend DriverFootprint;
        void close() {
            if (part_)
                std::exchange(part_, nullptr)->cancel(*this);
        }
        DriverFootprint* part_ = nullptr;
        std::span<const Share> shares_;
        uint64_t foreseen_ = 0, before_ = 0;  // bytes: for it, and of the driver's footprint when it began
        uint64_t count_ = 0;                  // step_count() then; 0: it wasn't alone
        bool open_ = false, known_ = false, makes_context_ = false;
    };

    // `pid`: under which NVML lists this process; 0 if that isn't known (own_pid.h). `on_top_at_most`: so many bytes of
    // the footprint are charged to nobody. `frees`: those that the driver may have carried out and the budget doesn't
    // show yet. `mutex`: over what is known, here and in others of the same GPU.
    void open(const NvmlGpu& nvml, unsigned pid, FreeMemory free_memory, uint64_t first_context_at_most,
              uint64_t on_top_at_most, const InFlight& frees, Mutex& mutex);

    Step before(const Budgets& budgets, bool makes_context = false);

    // Charges what the step will take at least, until its end. Whether it fits is the caller's to look at. With the
    // lock held.
    void foresee(Step& step, uint64_t bytes);
    // It doesn't. With the lock held.
    void take_back(Step& step);

    // Facts that a reading depends on.
    struct State {
        // How much of what is charged may not be on the GPU at the moment (managed memory, which the driver moves), in
        // bytes.
        uint64_t unsure = 0;
        // Contexts of this process that are there, so that NVML's silence about the process doesn't mean that it holds
        // nothing, nor does a step down that others made.
        unsigned contexts = 0;
        uint64_t of_others = 0;  // bytes on this GPU that are known to be other processes'
        uint64_t steps = 0;      // step_count() from before the contexts were counted
    };

    void after(Step& step, const State& state, const Budgets& budgets);

    // A context of this process is current, and nobody saw how it came: all that it may have taken is charged. Where
    // NVML has no figure for the process that is what has come to be in use since the last look, or at the first look
    // all that isn't known to be others', up to what a context can plausibly take.
    void meet(const State& state, const Budgets& budgets);

    // Reads the process's figure again, where there is one. Without one, steps that are still open, and memory on its
    // way back, are looked at. False if a figure was read and could not be compared, since something was in flight all
    // the time.
    bool refresh(const State& state, const Budgets& budgets);

    // Memory that `from` was charged with by itself is on its way back to the driver, which has it at a time of its own
    // (cuMemFreeAsync of cuMemAlloc's memory, or what another process still holds). Until it is seen to be gone it is
    // the driver's footprint, and no longer in `from`. False where nothing will be read: nothing changes then. With the
    // lock held.
    bool take_over(uint64_t bytes, const Budget& from, const Budgets& budgets);

    /// Memory that NVML's figure of this process lacks: charged, and no part of the footprint. Only where exact() is
    /// true.
    UnlistedMemory& unlisted() { return unlisted_; }
    const UnlistedMemory& unlisted() const { return unlisted_; }

    // No context of this process is on the GPU any more, so nothing is there but what is on its way back. What others
    // have blurred steps by goes with that. Not where NVML has a figure. With the lock held.
    void none_left(const Budgets& budgets) {
        is_locked();
        base_ = contexts_least_ = 0;
        unsettled_ = false;
        set(taken_over_, budgets.shares);
    }

    // Bytes of it that are charged to nobody.
    uint64_t on_top() const {
        const uint64_t all = bytes();  // read once: it may grow meanwhile
        return all - charged_of(all);
    }
    // All of it, and without what is foreseen for calls under way; the latter with the lock held.
    uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    uint64_t measured() const {
        is_locked();
        return bytes() - foreseen_.load(std::memory_order_relaxed);
    }
    // Something is charged for a call under way, which the driver may not have taken yet.
    bool foresees() const { return foreseen_.load(std::memory_order_relaxed) != 0; }
    // How many steps have begun and ended so far.
    uint64_t step_count() const { return step_count_.load(std::memory_order_acquire); }
    // The last look at what was measured found no quiet moment. With the lock held.
    bool unsettled() const {
        is_locked();
        return unsettled_;
    }
    // No step is under way. With the lock held.
    bool at_rest() const {
        is_locked();
        return open_steps_ == 0;
    }
    /// Bytes that this process's first context took, as NVML's figure had it, once: 0 from then on, and where it can't
    /// be told from what else the driver took.
    uint64_t take_first_context() { return first_context_.exchange(0, std::memory_order_relaxed); }
    /// The most that a context is believed to take, in bytes.
    uint64_t context_at_most() const { return first_context_at_most_; }
    bool exact() const { return source_.load(std::memory_order_relaxed) == Source::process; }

  private:
    // From `steps` it can become `process` as soon as NVML lists this process. Never the other way.
    enum class Source { steps, process };
    enum class Look { settled, busy, unreadable };

    // Bytes of a footprint that the budgets are charged.
    uint64_t charged_of(uint64_t bytes) const { return bytes - std::min(bytes, on_top_at_most_); }
    bool used_by_all(uint64_t* bytes) const;
    template <typename Use>
    Look at_rest(const Budgets& budgets, Use use);
    // Tells clang what it can't see: the caller has the lock, or there is none yet: before open() nobody else knows
    // of this object.
    void is_locked() const CUSLICE_ASSERT_HELD(*mutex_) {}
    void count_step(bool begins) CUSLICE_REQUIRES(*mutex_);
    void know_contexts(const State& state, uint64_t own_steps) CUSLICE_REQUIRES(*mutex_);
    void attribute(int64_t rest, uint64_t at_most, std::span<const Share> shares) CUSLICE_REQUIRES(*mutex_);
    void attribute_context(int64_t rest, uint64_t at_most, const State& state, std::span<const Share> shares)
        CUSLICE_REQUIRES(*mutex_);
    void made_context(uint64_t before) CUSLICE_REQUIRES(*mutex_);
    void note_first_context(const Step& step);
    uint64_t context_bytes() const CUSLICE_REQUIRES(*mutex_) {
        return contexts_made_ ? contexts_bytes_ / contexts_made_ : 0;
    }
    void look_past_nvml(std::span<const Share> shares);
    bool read_process(const State& state, const Budgets& budgets, bool* compared = nullptr);
    void set(uint64_t bytes, std::span<const Share> shares) CUSLICE_REQUIRES(*mutex_);
    void charge(uint64_t bytes, std::span<const Share> shares, const Budget* from = nullptr, uint64_t moved = 0)
        CUSLICE_REQUIRES(*mutex_);
    void cancel(Step& step);

    NvmlGpu nvml_;
    UnlistedMemory unlisted_;
    FreeMemory free_memory_ = nullptr;
    const InFlight* frees_ = nullptr;
    Mutex* mutex_ = nullptr;
    std::atomic<Source> source_{Source::steps};
    unsigned pid_ = 0;
    uint64_t first_context_at_most_ = 0, on_top_at_most_ = 0;
    std::atomic<uint64_t> first_context_{0};
    std::atomic<uint64_t> bytes_{0};
    std::atomic<uint64_t> foreseen_{0};  // of these, for calls under way; changed with the lock held
    uint64_t taken_over_ CUSLICE_GUARDED_BY(*mutex_) =
        0;  // and of these it is believed that they are gone, or soon will be

    // Steps. The driver's footprint is base_ and the change of the rest since mark_.
    bool marked_ CUSLICE_GUARDED_BY(*mutex_) = false;
    uint64_t base_ CUSLICE_GUARDED_BY(*mutex_) = 0;
    int64_t mark_ CUSLICE_GUARDED_BY(*mutex_) = 0;
    unsigned open_steps_ CUSLICE_GUARDED_BY(*mutex_) = 0;
    std::atomic<uint64_t> step_count_{0};
    bool unsettled_ CUSLICE_GUARDED_BY(*mutex_) = false;  // a step has ended, and no moment was found to read the rest
    uint64_t contexts_bytes_ CUSLICE_GUARDED_BY(*mutex_) = 0,
                             contexts_made_
                             CUSLICE_GUARDED_BY(*mutex_) = 0;  // what contexts took when they were made, and how many
    uint64_t contexts_least_ CUSLICE_GUARDED_BY(*mutex_) =
        0;  // what those that are there take; 0 where one may just have begun or ended
};

}  // namespace cuslice
