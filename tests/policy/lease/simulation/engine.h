// SPDX-License-Identifier: Apache-2.0
// A simulated GPU: it runs the work of one process at a time, and where several have some they take turns by the
// driver's time slices, which may end within a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/policy/lease/simulation/machine.h"

namespace cuslice::tests {

/// A process, as a GPU sees it.
class Submitter {
  public:
    virtual ~Submitter() = default;
    /// The next kernel's length in nanoseconds; 0: nothing is queued.
    virtual uint64_t take(unsigned gpu) = 0;
    /// True if there is another one, were it asked for.
    virtual bool has_work(unsigned gpu) const = 0;
    /// A kernel ran from then until now, to its end or to a time slice's.
    virtual void ran(unsigned gpu, uint64_t from, bool to_its_end) = 0;
};

class Engine {
  public:
    /// `switch_cost()`: time that it does nothing between two processes' kernels.
    Engine(Machine& machine, unsigned number, std::function<uint64_t()> switch_cost);
    /// The process has work now.
    void notify(Submitter& submitter);
    /// True if a kernel of it runs, or was interrupted.
    bool runs(const Submitter& submitter) const;
    /// Its process has ended: what it was running is gone.
    void drop(Submitter& submitter);
    /// The driver's time slices, where several processes have work.
    static constexpr uint64_t kSlice = 2 * kMs;

  private:
    struct Place {
        Submitter* submitter;
        uint64_t left;  // of an interrupted kernel
    };

    bool has_kernel(Place& place);
    bool choose_place();
    bool others_have_work() const;
    void start();
    void stop_at(uint64_t time);
    void stopped(uint64_t run);

    Machine& machine_;
    const unsigned number_;
    const std::function<uint64_t()> switch_cost_;
    std::vector<Place> places_;
    size_t last_ = 0;  // whose kernel ran last
    uint64_t slice_left_ = 0;
    bool running_ = false;
    uint64_t from_ = 0, length_ = 0, end_ = 0;
    uint64_t run_ = 0;  // number of the event that ends this run
};

}  // namespace cuslice::tests
