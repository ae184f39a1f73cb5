// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/mutex.h"
#include "policy/lease/gate.h"
#include "policy/lease/layout.h"
#include "policy/lease/steps.h"
#include "policy/lease/surroundings.h"

// One process's part in the lease: its threads stand at one gate, and one thread of its own hands the lease on.
namespace cuslice::lease {

/// Reasons for which a thread goes on although another job had the GPU, or has it still.
enum class Reason : uint8_t {
    none,
    holder_ended,    // the process that held it has ended
    holder_stopped,  // it is stopped
    holder_overdue,  // its work doesn't run out
    deadline,        // the caller's
    damaged,         // the file is no lease any more
    no_place,        // the file doesn't know this process any more
    crowded,         // others replace the value all the time, or stand still while they make one
};
/// Text for people, such as "is stopped"; what is behind `holder_…` goes on from the holder's name.
const char* text_of(Reason reason);

/// Answer to a thread that wants to submit work.
struct Answer {
    bool granted = true;  // false: it goes on without the lease
    Reason reason = Reason::none;
    uint64_t job = 0;  // passed by, or still holding; 0: none is known
    int32_t pid = 0;   // of the holder's process that is the reason; 0: none is known
};

/// A job's share of one GPU, in percent.
struct Share {
    uint32_t gpu = 0;  // as Lease::number_of_gpu() says
    uint32_t weight = kWhole;
    uint32_t cap = kWhole;
};

/// Sleep that try_acquire() asks for.
struct Pause {
    uint64_t shown = 0;  // by the gate
    uint64_t until = 0;
};

/// Thread-safe, but for forget(). attach() is first.
///
/// Whatever becomes of the file, nothing here waits for longer than it says: where this process can't be in the lease
/// any more its gate stays open.
class Lease {
  public:
    /// Takes part in the lease of this file, out of any job. Both outlive this. `self`: the identity of this process.
    void attach(File& file, Surroundings& surroundings, const Member& self);
    /// From now on the address of this process's gate stands in here too, for code that can't call held(). First.
    void show_gate_in(std::atomic<Gate*>& place) { shown_in_ = &place; }
    /// The number that the file has for a GPU; kNoPlace: it has no room for another one.
    uint32_t number_of_gpu(const char* uuid);
    /// Enters this process in a job, with the job's share of a GPU unless it has one. False: there is no room, or the
    /// file is damaged.
    bool join(uint64_t job, const Share& share);
    /// Gives the job a share of a GPU of which it has none yet.
    bool set_share(const Share& share);
    /// Passes on what it holds, and leaves the job.
    void leave();
    /// In a forked child, which is no member: its gate is open.
    void forget();

    /// True if this process may submit work now, and where it is in no lease.
    bool held() const { return is_open(gate_.load(std::memory_order_relaxed)->word.load(std::memory_order_relaxed)); }

    /// Waits for the lease, until the deadline. Passes by whoever doesn't pass it on.
    Answer acquire(uint64_t deadline);
    /// The same without a sleep. False: sleep so, and ask again.
    bool try_acquire(uint64_t deadline, Answer* answer, Pause* pause);

    /// The gate's value: is_open(), is_wanted().
    uint64_t gate() const { return gate_.load(std::memory_order_relaxed)->word.load(); }
    /// For the thread that hands the lease on: sleeps while the gate shows this, until then at most.
    void await_change(uint64_t shown, uint64_t until);
    /// Ends that sleep, and all others at this process's gate.
    void nudge() { surroundings_->wake(*gate_.load(std::memory_order_relaxed)); }
    /// Does all that is due, and returns when something is due next.
    uint64_t look();

    /// Adds to what the GPU's work of this turn took, as measured there. pass() tells it to others.
    void charge(uint32_t gpu, uint64_t nanoseconds);
    /// All work of this process has run out: others may have the GPUs.
    void pass();

    /// Copies the state, for figures. False: the file is damaged.
    bool read(State* into);

  private:
    template <typename Step>
    Reason do_step(Step step) CUSLICE_REQUIRES(mutex_);
    void stand_at(Gate& gate) CUSLICE_REQUIRES(mutex_);
    void open_for_good() CUSLICE_REQUIRES(mutex_);
    enum class Members : uint8_t { taking_part, all };
    void take_out_ended(Members members) CUSLICE_REQUIRES(mutex_);
    void pass_by_overdue() CUSLICE_REQUIRES(mutex_);
    Reason why_overdue(const Job& job, const Member& member, uint64_t now) CUSLICE_REQUIRES(mutex_);
    void note_passed_by(Reason reason, const Job& job, const Member& member) CUSLICE_REQUIRES(mutex_);
    Answer take_passed_by() CUSLICE_REQUIRES(mutex_);
    Answer let_in();
    bool fail(Reason reason, Answer* answer) CUSLICE_REQUIRES(mutex_);
    uint64_t next_look(uint64_t now) const CUSLICE_REQUIRES(mutex_);
    bool is_in() const CUSLICE_REQUIRES(mutex_);

    mutable Mutex mutex_{LockRank::lease};
    Gate no_gate_{kOpen};
    std::atomic<Gate*> gate_{&no_gate_};
    std::atomic<Gate*>* shown_in_ = nullptr;
    File* file_ = nullptr;
    Surroundings* surroundings_ = nullptr;
    Member self_{};
    uint32_t place_ = kNoPlace;
    Answer passed_by_;  // to be told with the next answer
    std::atomic<bool> is_any_passed_by_{false};
    uint64_t charged_[kGpus] = {};
    State state_{};  // a copy, which nobody else can change while a step looks at it
};

}  // namespace cuslice::lease
