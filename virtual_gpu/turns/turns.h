// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/event_count.h"
#include "policy/base/mutex.h"
#include "policy/lease/process_lease.h"
#include "policy/lease/queue_depth.h"
#include "virtual_gpu/turns/queued_work.h"

namespace cuslice {

class VirtualGpu;

/// This process's part in the lease of its job, where time is shared: its launches wait for the job's turn, and a
/// thread of its own passes the lease on. Thread-safe.
///
/// Whatever fails, launches go on: without the file, a place in it, or the thread, nothing waits.
class Turns {
  public:
    explicit constexpr Turns(Quiescence& process) : work_(process) {}

    /// Services of the process. Set before the first launch.
    struct Services {
        void (*use_all)() = nullptr;                          // calls use() of each GPU that has a context
        void (*answered)(const lease::Answer&) = nullptr;     // a holder was passed by, or this process
        void (*failed)(const lease::LedgerError&) = nullptr;  // there is no lease
        void (*started)() = nullptr;                          // end() is to be called before the driver's end
        void (*ends)() = nullptr;                             // the job's times are known until it returns
    };
    Services services;

    /// The process has a context on this GPU: enters the job's lease there.
    void use(const VirtualGpu& gpu);

    /// The same of all GPUs, before the first launch: nobody may have seen its context begin.
    void start();
    bool has_started() const { return phase_.load() != Phase::not_yet; }

    /// Waits until the job has its turn, and its queue is short enough where there are other jobs.
    void await_turn();
    /// The launch that waited has been given to the driver.
    void submitted();

    /// The job's time on a GPU so far, in nanoseconds. False: it has no share there, or hasn't started.
    struct Times {
        uint32_t weight = 0;
        uint64_t had = 0, waited = 0;
    };
    bool times_on(const VirtualGpu& gpu, Times* times);

    /// The program ends: others have the GPUs at once, and the thread calls the driver no more.
    void end();
    /// In a forked child, which is in no job.
    void forget();

  private:
    enum class Phase : uint8_t { not_yet, joined, left };

    bool open_lease();
    void give_up(const lease::LedgerError& why);
    void start_thread() CUSLICE_REQUIRES(mutex_);
    void leave();
    void await_thread();
    void say_no_room(const VirtualGpu& gpu);
    lease::Terms terms() const;
    bool has_room() const;
    void await_room(uint64_t* since);
    void set_allowed(uint64_t launch);
    bool enter();

    // The thread's own.
    static void* run(void* self);
    void pass_on();
    uint64_t look(uint64_t now);
    void look_for_file(uint64_t now);
    uint64_t look_after(uint64_t now);
    uint64_t look_after_open(uint64_t gate, uint64_t now);
    uint64_t look_after_closed(uint64_t now);
    uint64_t rest(uint64_t now, uint64_t poll);
    void begin_bound(uint64_t now);
    void begin_among_others(uint64_t now);
    void allow_first(uint64_t submitted);
    void make_room(uint64_t now);
    void make_room_unmarked(uint64_t submitted, uint64_t now);
    void note_passed(uint64_t launch);
    bool is_idle(uint64_t now);
    bool pass_early();
    bool has_run_out(uint64_t now);
    bool mark_all();
    void pass();

    Mutex mutex_{LockRank::turns};  // over opening and joining
    std::atomic<Phase> phase_{Phase::not_yet};
    uint32_t used_ CUSLICE_GUARDED_BY(mutex_) = 0;  // bits of GPUs, by their numbers in the lease
    bool has_thread_ CUSLICE_GUARDED_BY(mutex_) = false;
    lease::ProcessLease lease_;

    std::atomic<unsigned> gpus_{1};               // in `used_`
    std::atomic<uint64_t> submitted_{0};          // launches that had to look here, and have been given to the driver
    std::atomic<uint32_t> calls_{0};              // those that haven't
    std::atomic<uint32_t> under_way_{0};          // of these, those that are past the gate
    std::atomic<uint64_t> marked_{0};             // the last launch behind which a mark was due
    std::atomic<uint64_t> allowed_{0}, step_{1};  // of `depth_`
    std::atomic<bool> is_resting_{false};         // the thread, until the next launch
    std::atomic<bool> is_passing_{false};         // it is about to pass on what isn't used
    std::atomic<bool> is_looking_{false};         // the thread, maybe in the driver: it doesn't sleep
    EventCount room_, looked_;
    QueuedWork work_;

    // The thread's own.
    lease::QueueDepth depth_;
    uint64_t next_look_for_file_ = 0;
    uint64_t shown_ = 0, due_ = 0;  // by the gate, at the last look
    uint64_t settled_ = 0;          // kSettled after that has changed
    uint64_t passed_at_ = 0;        // what the gate showed when the lease was passed last
    bool is_bounded_ = false;       // there are others in this turn
    bool has_first_ = false;        // launches of the next turn, which begins with others, have room already
    bool is_closing_ = false;       // the turn is over, and a mark stands behind its work, or stood
    bool are_all_marked_ = false;   // no launch was under way when that was set
    uint64_t ran_out_at_ = 0;       // a mark was passed with launches still under way; 0: none was
    uint64_t looked_at_ = 0;        // when marks were last asked for that weren't passed; 0: not yet
    uint64_t through_ = 0;          // the last launch that is known to have run out
    uint64_t quiet_launch_ = 0, quiet_since_ = 0;
    uint32_t quiet_under_way_ = 0;  // since then, and left by a longjmp if that is long
};

}  // namespace cuslice
