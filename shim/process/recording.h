// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "policy/base/page_vector.h"
#include "policy/budget/allocation_table.h"
#include "policy/trace/log.h"
#include "virtual_gpu/gpu/contexts.h"

namespace cuslice {

// Writes the program's allocations and frees into a file as they happen (key `record`), and keeps the sizes of live
// blocks, since a free names none. Each thread writes its own rows, without a lock. Thread-safe.
class Recording {
  public:
    struct Block {
        uint64_t address = 0;
        uint64_t bytes = 0;        // as asked for; below 2^44
        Contexts::Id context = 0;  // whose end frees it; 0: none
        int gpu = kNoGpu;          // by its ordinal
    };
    static constexpr int kNoGpu = -1;  // not known
    static constexpr int kMaxGpus = 64;

    // Completes a row with what is known of a GPU (never kNoGpu). Called by any thread, with no lock held.
    using Describe = void (*)(int gpu, trace::Row& row);

    // From now on. The file is made by the first row, so that a process that allocates nothing has none. `stacks`: rows
    // of large blocks and of refusals have Python's stack.
    void start(std::string_view file, bool stacks, Describe describe);

    // After the allocation. What was at the address has gone in a way that nobody saw, and is freed by this.
    void allocated(const Block& block, uint64_t stream);
    void refused(uint64_t bytes, uint64_t stream, int gpu);

    // Before the free: afterwards another thread may have the address already. False if there is no such block;
    // otherwise `block` can be given to `allocated` again, if the free fails.
    bool freed(uint64_t address, uint64_t stream, Block* block);

    // The same for all blocks of a context that is about to end.
    void context_ends(Contexts::Id context, PageVector<Block>* blocks);

    // News to report, once each: why the recording has ended, or the file that it is written to. Null if there is
    // none.
    const Reason* failure();
    const trace::Path* begun();
    // True, once, if either of them may have news.
    bool take_news() {
        return news_.load(std::memory_order_acquire) && news_.exchange(false, std::memory_order_acq_rel);
    }

    // The program ends: what its file has beyond its rows is cut off. What threads do after that is written all the
    // same.
    void finish();

    // In a forked child, in which the driver answers no call: it has nothing to write.
    void forget();

  private:
    enum class State : int { off, no_file_yet, open, ending, ended };
    State state() const { return state_.load(std::memory_order_acquire); }
    bool on() const { return state() == State::no_file_yet || state() == State::open; }
    trace::Row row_of(trace::Action action, const Block& block, uint64_t stream) const;
    Allocation packed(const Block& block);
    Block unpacked(const Allocation& allocation) const;
    bool begin(const trace::Row& row);
    void write_with_stack(trace::Row row);
    void write(const trace::Row& row);
    void append(const trace::Row& row);
    void end(const Reason& why);

    std::atomic<State> state_{State::off};
    std::atomic<bool> news_{false}, told_begun_{false}, told_end_{false};
    std::string_view name_;
    bool stacks_ = false;
    Describe describe_ = nullptr;
    Mutex mutex_{LockRank::recording};  // over making the file
    trace::Log log_;
    Reason failure_;
    AllocationTable blocks_;
    // By a context's number, its GPU's ordinal and 1. The table's own numbers have no room for it.
    std::atomic<uint8_t> gpus_[1 << 16] = {};
};

}  // namespace cuslice
