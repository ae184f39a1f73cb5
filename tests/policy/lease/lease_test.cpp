// SPDX-License-Identifier: Apache-2.0
// One process's part in a lease: what its gate shows, what its threads are answered, and what becomes of it where
// others end, stand still, or write over the file.
#include "policy/lease/lease.h"

#include <cstring>
#include <memory>

#include "policy/lease/published.h"
#include "tests/catch.h"
#include "tests/policy/lease/simulation/machine.h"

using namespace cuslice::lease;
using namespace cuslice::tests;

namespace {

struct Process {
    Process(Machine& machine, uint64_t job, uint32_t weight = 50, uint32_t cap = kWhole)
        : machine_(machine), self(machine.new_process()) {
        lease->attach(machine.file(), machine, self);
        REQUIRE(lease->join(job, {.gpu = lease->number_of_gpu("GPU-0"), .weight = weight, .cap = cap}));
    }
    // True if it need not sleep.
    bool tries(uint64_t deadline = kForEver) { return lease->try_acquire(deadline, &answer, &pause); }
    void fare(Condition condition) { machine_.set_condition(self.presence, condition); }

    Machine& machine_;
    Member self;
    std::unique_ptr<Lease> lease = std::make_unique<Lease>();
    Answer answer;
    Pause pause;
};

}  // namespace

TEST_CASE("a process in no lease may submit") {
    const auto lease = std::make_unique<Lease>();
    CHECK(lease->held());
    CHECK(lease->acquire(0).granted);
    lease->pass();
    lease->leave();
}

TEST_CASE("a process that has joined submits once it has the lease, and not after it has passed it on") {
    Machine machine({});
    Process one(machine, 1), other(machine, 2);
    CHECK_FALSE(one.lease->held());
    CHECK(one.tries());
    CHECK(one.answer.granted);
    CHECK(one.lease->held());
    CHECK_FALSE(other.tries());
    CHECK(is_wanted(one.lease->gate()));
    one.lease->charge(0, kMs);
    one.lease->pass();
    CHECK_FALSE(one.lease->held());
    CHECK(other.lease->held());
    CHECK(other.tries());
    const auto state = std::make_unique<State>();
    REQUIRE(one.lease->read(state.get()));
    CHECK(state->jobs[0].turns == 1);
}

TEST_CASE("a waiter closes the holder's gate at the end of the turn, and the holder's thread learns of it") {
    Machine machine({});
    Process holder(machine, 1), waiter(machine, 2);
    bool woken = false;
    machine.on_wake(machine.file().gates[0], [&] { woken = true; });
    REQUIRE(holder.tries());
    REQUIRE_FALSE(waiter.tries());
    CHECK(waiter.pause.until == machine.now() + 50 * kMs);
    machine.run_until(waiter.pause.until);
    woken = false;
    CHECK_FALSE(waiter.tries());
    CHECK_FALSE(holder.lease->held());
    machine.run_until(machine.now());
    CHECK(woken);
}

TEST_CASE("whoever has ended is passed by when somebody looks, and that is said once") {
    Machine machine({});
    Process holder(machine, 1), waiter(machine, 2);
    REQUIRE(holder.tries());
    holder.fare(Condition::ended);
    CHECK(waiter.tries());
    CHECK(waiter.answer.granted);
    CHECK(waiter.answer.reason == Reason::holder_ended);
    CHECK(waiter.answer.job == 1);
    CHECK(waiter.answer.pid == holder.self.pid);
    CHECK(waiter.tries());
    CHECK(waiter.answer.reason == Reason::none);
}

TEST_CASE("whoever is stopped is passed by a quantum after its turn, and whoever doesn't end by its patience") {
    const bool stopped = GENERATE(true, false);
    Machine machine({});
    Process holder(machine, 1), waiter(machine, 2);
    REQUIRE(holder.tries());
    REQUIRE_FALSE(waiter.tries());
    if (stopped)
        holder.fare(Condition::stopped);
    const uint64_t closed = machine.now() + 50 * kMs;
    while (!waiter.tries())
        machine.run_until(waiter.pause.until);
    CHECK(waiter.answer.granted);
    CHECK(waiter.answer.reason == (stopped ? Reason::holder_stopped : Reason::holder_overdue));
    CHECK(machine.now() == closed + (stopped ? 50 : 1000) * kMs);
    // It goes on as one that waits.
    holder.fare(Condition::runs);
    holder.lease->pass();
    CHECK_FALSE(holder.tries());
    waiter.lease->pass();
    CHECK(holder.tries());
}

namespace {

/// A machine on which another thread of the process does all that is due while one sleeps.
struct TwoThreads : Machine {
    explicit TwoThreads(const Terms& terms) : Machine(terms) {}
    void sleep(const Gate&, uint64_t, uint64_t until) override {
        run_until(until);
        lease->look();
    }
    Lease* lease = nullptr;
};

}  // namespace

TEST_CASE("a holder whose work doesn't end leaves it to those who wait to pass it by, who are told") {
    Machine machine({});
    Process holder(machine, 1), waiter(machine, 2);
    REQUIRE(holder.tries());
    REQUIRE_FALSE(waiter.tries());
    machine.run_until(machine.now() + 50 * kMs);
    holder.lease->look();
    machine.run_until(machine.now() + 1000 * kMs);
    holder.lease->look();
    CHECK_FALSE(waiter.lease->held());
    CHECK(waiter.tries());
    CHECK(waiter.answer.reason == Reason::holder_overdue);
    CHECK(waiter.answer.pid == holder.self.pid);
}

TEST_CASE("a holder whose turn its cap has ended passes itself by where nobody else waits for it") {
    Machine machine({});
    Process alone(machine, 1, 50, 50);
    REQUIRE(alone.tries());
    machine.run_until(machine.now() + 50 * kMs);
    alone.lease->look();
    const uint64_t closed = machine.now();
    while (!alone.tries() && machine.now() < closed + 10 * kSecond)
        machine.run_until(alone.pause.until);
    CHECK(alone.answer.granted);
    CHECK(alone.answer.reason == Reason::holder_overdue);
    CHECK(alone.lease->held());
}

TEST_CASE("a thread that sleeps is told whom another one of its process has passed by") {
    TwoThreads machine({});
    Process holder(machine, 1), waiter(machine, 2);
    machine.lease = waiter.lease.get();
    REQUIRE(holder.tries());
    const Answer answer = waiter.lease->acquire(kForEver);
    CHECK(answer.granted);
    CHECK(answer.reason == Reason::holder_overdue);
    CHECK(answer.pid == holder.self.pid);
    CHECK(waiter.lease->acquire(kForEver).reason == Reason::none);
}

TEST_CASE("a thread goes on without the lease at its deadline, and waits no longer") {
    Machine machine({});
    Process holder(machine, 1), waiter(machine, 2);
    REQUIRE(holder.tries());
    const uint64_t deadline = machine.now() + 10 * kMs;
    REQUIRE_FALSE(waiter.tries(deadline));
    CHECK(waiter.pause.until == deadline);
    machine.run_until(deadline);
    CHECK(waiter.tries(deadline));
    CHECK_FALSE(waiter.answer.granted);
    CHECK(waiter.answer.reason == Reason::deadline);
    CHECK_FALSE(is_wanted(holder.lease->gate()));
}

TEST_CASE("a gate that its granter was killed before showing is shown by whoever looks next") {
    Machine machine({});
    Process one(machine, 1), other(machine, 2);
    REQUIRE(one.tries());
    REQUIRE_FALSE(other.tries());
    const uint64_t before = machine.file().gates[1].word.load();
    one.lease->pass();
    machine.file().gates[1].word.store(before);
    CHECK_FALSE(other.lease->held());
    CHECK(other.tries());
    CHECK(other.lease->held());
}

TEST_CASE("where the file is written over, a process's gate stays open, and that is said") {
    Machine machine({});
    Process one(machine, 1), other(machine, 2);
    REQUIRE(one.tries());
    REQUIRE_FALSE(other.tries());
    const auto garbage = static_cast<int>(GENERATE(0xff, 0x5a, 0x00));
    memset(static_cast<void*>(&machine.file()), garbage, sizeof(File));
    CHECK(other.tries());
    CHECK_FALSE(other.answer.granted);
    CHECK((other.answer.reason == Reason::damaged || other.answer.reason == Reason::no_place));
    CHECK(other.lease->held());
    one.lease->pass();
    one.lease->look();
    one.lease->leave();
    CHECK(one.lease->held());
}

TEST_CASE("a process whose place was taken from it is in no lease, and can join again") {
    Machine machine({});
    Process one(machine, 1), other(machine, 2);
    one.fare(Condition::ended);
    REQUIRE(one.tries());
    REQUIRE(other.tries());
    CHECK(one.tries());
    CHECK(one.answer.reason == Reason::no_place);
    CHECK(one.lease->held());
    one.fare(Condition::runs);
    CHECK(one.lease->join(1, {.gpu = 0}));
    CHECK_FALSE(one.tries());
}

TEST_CASE("where all buffers are those of processes that stand still, a thread goes on without the lease") {
    Machine machine({});
    Process one(machine, 1);
    for (Buffer& buffer : machine.file().buffers)
        buffer.owner.store(one.self.presence + 1);
    CHECK(one.tries());
    CHECK_FALSE(one.answer.granted);
    CHECK(one.answer.reason == Reason::crowded);
}

TEST_CASE("a forked child is no member") {
    Machine machine({});
    Process one(machine, 1);
    one.lease->forget();
    CHECK(one.lease->held());
    CHECK(one.tries());
    const auto state = std::make_unique<State>();
    CHECK_FALSE(one.lease->read(state.get()));
}

TEST_CASE("each reason has words") {
    for (auto reason = Reason::holder_ended; reason <= Reason::crowded;
         reason = static_cast<Reason>(static_cast<int>(reason) + 1))
        CHECK(strlen(text_of(reason)) > 0);
}

TEST_CASE("a job's share is its first process's, on each GPU") {
    Machine machine({});
    Process one(machine, 1), other(machine, 1, 75);
    const uint32_t second = one.lease->number_of_gpu("GPU-1");
    REQUIRE(one.lease->set_share({.gpu = 0, .weight = 75}));
    REQUIRE(one.lease->set_share({.gpu = second, .weight = 20, .cap = 40}));
    REQUIRE(other.lease->set_share({.gpu = second, .weight = 30}));
    CHECK_FALSE(one.lease->set_share({.gpu = kGpus}));
    CHECK_FALSE(one.lease->join(1, {.gpu = 0}));
    const auto state = std::make_unique<State>();
    REQUIRE(other.lease->read(state.get()));
    CHECK(state->jobs[0].claims[0].weight == 50);
    CHECK(state->jobs[0].claims[second].weight == 20);
    CHECK(state->jobs[0].claims[second].cap == 40);
}
