// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of work in one stream. Work runs in the calling thread, at once, as long as nothing stands before it; only
// a host function, which may block, goes to a thread of its own, and what is submitted behind it waits its turn there.
//
// After be_late() nothing runs when it is submitted (work_queue_late.cpp): it stays queued until somebody waits for it,
// until too much is queued, or until a look at some queue lets it get on by chance.
//
// Where work takes time (timing.h), a queue that belongs to a context tells its work to the timekeeper too, and is done
// when both are.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fake/driver/timed_queue.h"

namespace cuslice::fake {

using Task = std::function<void()>;

class WorkQueue : public std::enable_shared_from_this<WorkQueue> {
  public:
    /// A point in the queue's work that can be waited for.
    struct Mark {
        std::shared_ptr<WorkQueue> queue;
        uint64_t ticket = 0;
        TimePoint time;
    };
    /// A piece of work on a GPU, and the place for the time of its end, if anybody wants that.
    struct Needs {
        Work work;
        ReachedAt reached_at;
        std::function<bool()> ended;  // of held work: asked again and again, releases it
    };

    /// A context's, by its number at the timekeeper's; before there is work.
    void keep_time(uint32_t context);

    /// Submits work that does not block. It starts after everything in this queue and after the marks.
    void submit(Task task, const std::vector<Mark>& after = {}, const Needs& needs = {});
    /// Submits a host function: it may block. It never runs in the caller's thread, unless the caller waits for it.
    void submit_host(Task task, const std::vector<Mark>& after = {});

    /// Everything that has been submitted up to now.
    Mark mark();
    /// Writes the times of ends that have been reached.
    void note_times();
    bool idle();
    void wait();

    static bool done(const Mark& mark);
    static void wait(const Mark& mark);

    /// From now on all queues' work is late. The same seed gives one thread the same order again.
    static void be_late(uint64_t seed);
    static bool late() { return late_; }
    /// Somebody asks whether the mark is reached: late work may get on a little, there or anywhere. Whoever asks often
    /// enough is told yes in the end.
    static void look(const Mark& mark);
    /// No queue has anything to do. Looks at no lock: this is what an idle GPU is asked most.
    static bool all_idle() { return pending_.load(std::memory_order_acquire) == 0 && !timed_; }
    /// Waits for all late work there is.
    static void finish_all();

  private:
    struct Item {
        Task task;
        std::vector<Mark> after;
        bool host = false;
    };
    using Hold = std::unique_lock<std::mutex>;
    enum class Host { here, aside };

    void run(Task task, const std::vector<Mark>& after);
    void enqueue(Item item);
    void drain();
    static bool ran(const Mark& mark);
    static void wait_until_run(const Mark& mark);

    void enqueue_late(Item item, Hold& hold);
    void run_front(Hold& hold, Host host);
    void finish_late();
    static bool advance(std::shared_ptr<WorkQueue> queue, Hold& hold, Host host);
    static void wait_late(const Mark& mark, Hold& hold);

    void begun() { submitted_++, pending_.fetch_add(1, std::memory_order_relaxed); }
    void ended() { completed_++, pending_.fetch_sub(1, std::memory_order_release); }

    static bool late_;
    static std::atomic<uint64_t> pending_;  // of all queues: submitted and not completed
    static std::atomic<bool> timed_;        // some queue keeps time
    std::unique_ptr<TimedQueue> time_;
    // All queues share one lock and one condition: they wait for each other.
    uint64_t submitted_ = 0, completed_ = 0;
    std::deque<Item> items_;
    bool running_ = false;  // somebody is executing work of this queue: the caller of submit, or the queue's thread
    size_t place_ = 0;      // among the queues with late work, if this has some
};

}  // namespace cuslice::fake
