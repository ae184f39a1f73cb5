// SPDX-License-Identifier: Apache-2.0
// A simulated process: one thread that submits kernels, as the hooks let it, and one that hands the lease on.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/policy/lease/simulation/engine.h"
#include "tests/policy/lease/simulation/workload.h"

namespace cuslice::tests {

/// GPU time that there is for a program that has no lease.
class Allowance {
  public:
    virtual ~Allowance() = default;
    virtual bool may_submit() = 0;
    virtual void took(uint64_t nanoseconds) = 0;
};

/// Random delays that programs share.
struct Delays {
    explicit Delays(uint32_t seed) : random(seed) {}
    /// From a grant until the first kernel runs: a process is woken, and the driver starts.
    uint64_t hand_over() { return nanoseconds(gap * random.uniform(0.5, 2)); }
    /// Time that is queued ahead when a gate closes.
    double queued() { return depth * random.uniform(1 - depth_error, 1 + depth_error); }
    double gap = 0.1, depth = 2, depth_error = 0.3;  // milliseconds; a part
    PythonRandom random;
};

class Program : public Submitter {
  public:
    struct Plan {
        uint64_t job = 0;
        uint32_t gpus = 1;  // bits
        uint32_t weight = lease::kWhole, cap = lease::kWhole;
        Demand demand;
        uint32_t seed = 1;
        Allowance* allowance = nullptr;  // in the lease's place
        bool shares = true;              // false: neither
    };

    Program(Machine& machine, std::vector<Engine>& engines, Delays& delays, const Plan& plan);
    void start();
    /// It ends without a word, or stands still and goes on.
    void kill();
    void stop();
    void go_on();
    void retry() { notify_engines(); }

    uint64_t take(unsigned gpu) override;
    bool has_work(unsigned gpu) const override;
    void ran(unsigned gpu, uint64_t from, bool to_its_end) override;

    /// GPU time in each second, and in all; the longest time that its threads waited for the lease.
    const std::vector<uint64_t>& by_second(unsigned gpu) const { return streams_[gpu].by_second; }
    uint64_t longest_wait() const { return longest_wait_; }
    lease::Lease& lease() { return *lease_; }
    const Plan& plan() const { return plan_; }
    bool lives() const { return lives_; }
    /// True if it has something to submit now.
    bool wants_gpu() const;
    bool has_queued() const;
    std::vector<lease::Answer> passed_by;  // that were told

  private:
    struct Stream {
        explicit Stream(const Kernels& source) : kernels(source) {}
        Kernels kernels;
        std::vector<uint64_t> ahead;  // queued when the gate closed, the first one last
        int64_t burst = 0;            // time that is still to be submitted before the next pause
        uint64_t charged = 0;
        std::vector<uint64_t> by_second;
    };

    bool uses(unsigned gpu) const { return plan_.gpus & lease::bit(gpu); }
    bool has_lease() const { return plan_.shares && !plan_.allowance; }
    bool may_submit() const;
    bool has_demand(unsigned gpu) const;
    void seek();
    void try_lease();
    void sleep_at_gate(const lease::Pause& pause);
    void notify_engines();
    void gate_changed();
    void queue_ahead(unsigned gpu);
    void hand_on();
    void look_later();
    void pause_if_done();

    Machine& machine_;
    std::vector<Engine>& engines_;
    Delays& delays_;
    const Plan plan_;
    std::unique_ptr<lease::Lease> lease_ = std::make_unique<lease::Lease>();
    lease::Member self_;
    std::vector<Stream> streams_;
    bool lives_ = true, stopped_ = false, pausing_ = false;
    bool asleep_ = false, starting_ = false, in_turn_ = false;
    uint64_t nap_ = 0, looks_ = 0;  // numbers of its last sleep and look
    uint64_t shown_ = 0;
    uint64_t waits_since_ = 0, longest_wait_ = 0;
};

}  // namespace cuslice::tests
