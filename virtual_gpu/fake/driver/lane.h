#pragma once
// The order of work in one stream. Work runs in the calling thread, at once, as long as nothing stands before it; only
// a host function, which may block, goes to a thread of its own, and what is submitted behind it waits its turn there.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace cuslice::fake {

using Task = std::function<void()>;

class Lane : public std::enable_shared_from_this<Lane> {
  public:
    /// A point in the lane's work that can be waited for.
    struct Mark {
        std::shared_ptr<Lane> lane;
        std::uint64_t ticket = 0;
    };

    /// Submits work that does not block. It starts after everything in this lane and after the marks.
    void submit(Task task, const std::vector<Mark>& after = {});
    /// Submits a host function: it may block, and never runs in the caller's thread.
    void submit_host(Task task, const std::vector<Mark>& after = {});

    /// Everything that has been submitted up to now.
    Mark mark();
    bool idle();
    void wait();

    static bool done(const Mark& mark);
    static void wait(const Mark& mark);

  private:
    void enqueue(Task task, const std::vector<Mark>& after);
    void drain();

    // All lanes share one lock and one condition: they wait for each other.
    std::uint64_t submitted_ = 0, completed_ = 0;
    std::deque<Task> queue_;
    bool running_ = false;  // somebody is executing work of this lane: the caller of submit, or the lane's thread
};

}  // namespace cuslice::fake
