// SPDX-License-Identifier: Apache-2.0
#include "tests/interleave/schedule.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/interleave/steps.h"

// The C library's own, which the linker calls so: those of the code in a run are answered here.
extern "C" long __real_syscall(long number, ...);

namespace cuslice::tests {

namespace {

/// Lets one thread go on, which waits for it.
class Turn {
  public:
    void give() {
        mine_.store(1, std::memory_order_release);
        __real_syscall(SYS_futex, &mine_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    void await() {
        constexpr int kLooks = 400;  // the other one may give it back at once
        for (int looks = 0; !mine_.load(std::memory_order_acquire); looks++)
            if (looks >= kLooks)
                __real_syscall(SYS_futex, &mine_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
        mine_.store(0, std::memory_order_relaxed);
    }

  private:
    std::atomic<uint32_t> mine_{0};
};

struct Worker {
    enum class Now { idle, ready, waits } now = Now::idle;
    const void* word = nullptr;  // that it waits for
    bool may_time_out = false, timed_out = false;
    const Schedule::Body* body = nullptr;
    bool ends = false;
    Turn turn;
    std::thread thread;
};

// The thread's own while it runs code of a run; else null.
thread_local Worker* own_worker = nullptr;

// While it lives the thread is in the schedule, of which nothing is a step: it may share the C++ library's templates
// with code that is built for runs.
class InSchedule {
  public:
    InSchedule() : self_(std::exchange(own_worker, nullptr)) {}
    ~InSchedule() { own_worker = self_; }
    InSchedule(const InSchedule&) = delete;
    InSchedule& operator=(const InSchedule&) = delete;

    /// Null outside a run.
    Worker* self() const { return self_; }

  private:
    Worker* const self_;
};

}  // namespace

struct Schedule::State {
    std::vector<std::unique_ptr<Worker>> workers;
    uint64_t number = 0, steps = 0;
    uint64_t usual[2] = {};         // of runs 0 and 1
    std::vector<uint64_t> changes;  // steps before which another thread goes on, the next one last
    uint64_t alone = 0;             // steps since another thread has run
    std::mt19937_64 random;
    Turn caller;

    Worker* other_ready(const Worker* than) {
        std::vector<Worker*> ready;
        for (const auto& worker : workers)
            if (worker.get() != than && worker->now == Worker::Now::ready)
                ready.push_back(worker.get());
        return ready.empty() ? nullptr : ready[random() % ready.size()];
    }

    // One that waits no longer than some time; its time is over.
    Worker* timed_out() {
        for (const auto& worker : workers)
            if (worker->now == Worker::Now::waits && worker->may_time_out) {
                worker->now = Worker::Now::ready;
                worker->timed_out = true;
                return worker.get();
            }
        return nullptr;
    }

    bool all_ended() const {
        return std::ranges::all_of(workers, [](const auto& one) { return one->now == Worker::Now::idle; });
    }

    void go_on(Worker& next, Worker& self) {
        alone = 0;
        if (&next == &self)
            return;
        next.turn.give();
        self.turn.await();
    }

    void change(Worker& self) {
        if (Worker* const next = other_ready(&self))
            go_on(*next, self);
        alone = 0;
    }

    // Goes on where this thread can't.
    Worker& successor(const Worker& of) {
        if (Worker* const ready = other_ready(&of))
            return *ready;
        if (Worker* const late = timed_out())
            return *late;
        stuck();
    }

    [[noreturn]] void stuck() const {
        std::fprintf(stderr, "no thread can go on in run %llu, after %llu steps\n",
                     static_cast<unsigned long long>(number), static_cast<unsigned long long>(steps));
        std::abort();
    }

    void work(Worker& self) {
        for (;;) {
            self.turn.await();
            if (self.ends)
                return;
            own_worker = &self;
            (*self.body)();
            own_worker = nullptr;
            self.now = Worker::Now::idle;
            if (all_ended()) {
                caller.give();
                continue;
            }
            alone = 0;
            successor(self).turn.give();
        }
    }
};

namespace {

Schedule::State* current = nullptr;

}  // namespace

Schedule::Schedule(unsigned threads) : state_(std::make_unique<State>()) {
    for (unsigned i = 0; i < threads; i++) {
        state_->workers.push_back(std::make_unique<Worker>());
        Worker& worker = *state_->workers.back();
        worker.thread = std::thread([this, &worker] { state_->work(worker); });
    }
}

Schedule::~Schedule() {
    for (const auto& worker : state_->workers) {
        worker->ends = true;
        worker->turn.give();
        worker->thread.join();
    }
}

uint64_t Schedule::steps() const { return state_->steps; }

void Schedule::run(uint64_t number, std::span<const Body> bodies) {
    State& state = *state_;
    state.number = number;
    state.random.seed(number);
    state.steps = state.alone = 0;
    state.changes.clear();
    if (number > 1) {
        const uint64_t count = 1 + state.random() % 4;
        for (uint64_t i = 0; i < count; i++)
            state.changes.push_back(1 + state.random() % std::max<uint64_t>(state.usual[number % 2], 1));
        std::ranges::sort(state.changes, std::greater());
    }
    for (size_t i = 0; i < bodies.size(); i++) {
        state.workers[i]->body = &bodies[i];
        state.workers[i]->now = Worker::Now::ready;
    }
    current = &state;
    state.workers[number > 1 ? state.random() % bodies.size() : 0]->turn.give();
    state.caller.await();
    current = nullptr;
    if (number <= 1)
        state.usual[number] = state.steps;
}

void before_access() {
    if (own_worker && current->number % 2)
        before_step();
}

void before_step() {
    if (!own_worker)
        return;
    const InSchedule in;
    Schedule::State& state = *current;
    state.steps++;
    // A thread that looks again and again waits for another one.
    constexpr uint64_t kMostAlone = 20'000;
    const bool drawn = !state.changes.empty() && state.changes.back() <= state.steps;
    if (drawn)
        state.changes.pop_back();
    if (drawn || ++state.alone >= kMostAlone)
        state.change(*in.self());
}

namespace {

long wait_for(Worker& self, const uint32_t* word, uint32_t value, bool may_time_out) {
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
        return errno = EAGAIN, -1;
    self.now = Worker::Now::waits;
    self.word = word;
    self.may_time_out = may_time_out;
    self.timed_out = false;
    current->go_on(current->successor(self), self);
    self.word = nullptr;
    return self.timed_out ? (errno = ETIMEDOUT, -1) : 0;
}

long wake(const void* word, long most) {
    long woken = 0;
    for (const auto& worker : current->workers)
        if (woken < most && worker->now == Worker::Now::waits && worker->word == word) {
            worker->now = Worker::Now::ready;
            woken++;
        }
    return woken;
}

}  // namespace

long futex_in_run(const uint32_t* word, int operation, uint32_t value, const void* time) {
    before_step();
    const InSchedule in;
    const int command = operation & FUTEX_CMD_MASK;
    if (command == FUTEX_WAKE)
        return wake(word, static_cast<long>(static_cast<int>(value)));
    if (command == FUTEX_WAIT)
        return wait_for(*in.self(), word, value, time != nullptr);
    std::fprintf(stderr, "a futex operation that runs don't know: %d\n", operation);
    std::abort();
}

bool in_run() { return own_worker != nullptr; }

void leave_run() { own_worker = nullptr; }

void give_way() {
    const InSchedule in;
    if (in.self())
        current->change(*in.self());
}

}  // namespace cuslice::tests

extern "C" {

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_futex && cuslice::tests::in_run())
        return cuslice::tests::futex_in_run(reinterpret_cast<const uint32_t*>(a), static_cast<int>(b),
                                            static_cast<uint32_t>(c), reinterpret_cast<const void*>(d));
    return __real_syscall(number, a, b, c, d, e, f);
}

int __real_sched_yield();
int __wrap_sched_yield() {
    if (!cuslice::tests::in_run())
        return __real_sched_yield();
    cuslice::tests::give_way();
    return 0;
}

// The tests' own code has some, and the thread that has one may not be the one that runs.
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
    if (!cuslice::tests::in_run())
        return __real_pthread_mutex_lock(mutex);
    while (pthread_mutex_trylock(mutex) != 0)
        cuslice::tests::give_way();
    return 0;
}

int __real_nanosleep(const timespec* time, timespec* left);
int __wrap_nanosleep(const timespec* time, timespec* left) {
    if (!cuslice::tests::in_run())
        return __real_nanosleep(time, left);
    cuslice::tests::give_way();
    return 0;
}

}  // extern "C"
