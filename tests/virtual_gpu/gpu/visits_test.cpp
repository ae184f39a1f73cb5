// SPDX-License-Identifier: Apache-2.0
// Visits of threads to contexts that are not their own, and who waits for whom when a context ends.
#include "virtual_gpu/gpu/visits.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/policy/rounds.h"
#include "tests/sleeping.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

const int kOne = 0, kOther = 0;  // contexts, for their addresses

/// Does something in a thread of its own, which is seen to sleep before this returns, or to have ended.
class Sleeper {
  public:
    explicit Sleeper(std::function<void()> act)
        : thread_([this, act] {
              id_ = this_thread();
              act();
              done_ = true;
          }) {
        while (!id_)
            std::this_thread::yield();
        await_sleep(id_);
    }
    bool done() const { return done_; }
    void join() { thread_.join(); }

  private:
    std::atomic<pid_t> id_{0};
    std::atomic<bool> done_{false};
    std::thread thread_;
};

/// Does something in another thread, and waits for it.
void elsewhere(const std::function<void()>& act) { std::thread(act).join(); }

}  // namespace

TEST_CASE("a visitor that there is no memory to note is in all the same, and the context's end doesn't wait for it") {
    Visits visits;
    {
        const NoMemory none;
        CHECK(visits.enter(&kOne));
    }
    elsewhere([&] {
        visits.begin_end(&kOne);
        visits.finish_end(&kOne);
    });
    visits.leave();
}

TEST_CASE("whoever ends a context is not let into it, and is again afterwards") {
    Visits visits;
    visits.begin_end(&kOne);
    CHECK_FALSE(visits.enter(&kOne));
    CHECK_FALSE(visits.enter(&kOther, true));  // it would take memory
    CHECK(visits.enter(&kOther));
    visits.leave();
    visits.finish_end(&kOne);
    CHECK(visits.enter(&kOne));
    CHECK(visits.enter(&kOther, true));
    visits.leave();
}

TEST_CASE("the end of a context waits for its visitors, and for no other's") {
    Visits visits;
    REQUIRE(visits.enter(&kOne));
    elsewhere([&] {
        visits.begin_end(&kOther);
        visits.finish_end(&kOther);
    });
    Sleeper ends([&] { visits.begin_end(&kOne); });
    CHECK_FALSE(ends.done());
    visits.leave();
    ends.join();
    CHECK(ends.done());
}

TEST_CASE("the end of any context waits for visitors that take memory") {
    Visits visits;
    REQUIRE(visits.enter(&kOne, true));
    Sleeper ends([&] { visits.begin_end(&kOther); });
    CHECK_FALSE(ends.done());
    visits.leave();
    ends.join();
}

TEST_CASE("a visitor of a context that is ending waits until it has ended, and others go on") {
    Visits visits;
    visits.begin_end(&kOne);
    bool in = false, takes = false;
    elsewhere([&] {
        in = visits.enter(&kOther);
        visits.leave();
    });
    CHECK(in);
    Sleeper visitor([&] {
        in = visits.enter(&kOne);
        visits.leave();
    });
    Sleeper taker([&] {
        takes = visits.enter(&kOther, true);
        visits.leave();
    });
    CHECK_FALSE(visitor.done());
    CHECK_FALSE(taker.done());
    in = false;
    visits.finish_end(&kOne);
    visitor.join();
    taker.join();
    CHECK(in);
    CHECK(takes);
}

TEST_CASE("two threads that end one context do so one after the other") {
    Visits visits;
    visits.begin_end(&kOne);
    Sleeper second([&] {
        visits.begin_end(&kOne);
        visits.finish_end(&kOne);
    });
    CHECK_FALSE(second.done());
    visits.finish_end(&kOne);
    second.join();
    CHECK(visits.enter(&kOne));
    visits.leave();
}

TEST_CASE("a thread's own visit doesn't keep it from ending the context, and is over by that") {
    Visits visits;
    REQUIRE(visits.enter(&kOne));
    visits.begin_end(&kOne);
    visits.finish_end(&kOne);
    elsewhere([&] {
        visits.begin_end(&kOne);
        visits.finish_end(&kOne);
    });
}

TEST_CASE("a thread that enters anew has left whatever it was in") {
    Visits visits;
    REQUIRE(visits.enter(&kOne));
    REQUIRE(visits.enter(&kOther));
    elsewhere([&] {
        visits.begin_end(&kOne);
        visits.finish_end(&kOne);
    });
    Sleeper ends([&] { visits.begin_end(&kOther); });
    CHECK_FALSE(ends.done());
    visits.leave();
    ends.join();
}

TEST_CASE("what a thread has left without a word is over once that is said, for those who wait already, too") {
    Visits visits;
    REQUIRE(visits.enter(&kOne));
    visits.begin_end(&kOther);
    REQUIRE(visits.enter(&kOne));
    Sleeper ends([&] { visits.begin_end(&kOne); });
    Sleeper enters([&] {
        visits.enter(&kOther);
        visits.leave();
    });
    CHECK_FALSE(ends.done());
    CHECK_FALSE(enters.done());
    visits.forget_own();
    ends.join();
    enters.join();
}

TEST_CASE("in a forked child nobody is in a context, and none is ending") {
    Visits visits;
    std::latch there{1}, go_on{1};
    std::thread other([&] {
        visits.begin_end(&kOther);
        CHECK(visits.enter(&kOne));
        there.count_down();
        go_on.wait();
        visits.leave();
        visits.finish_end(&kOther);
    });
    there.wait();
    const pid_t child = fork();
    if (child == 0) {
        visits.forget_all();
        visits.begin_end(&kOne);
        visits.finish_end(&kOne);
        const bool in = visits.enter(&kOther);
        visits.leave();
        _exit(in ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    Sleeper ends([&] { visits.begin_end(&kOne); });
    CHECK_FALSE(ends.done());  // the parent's thread is still in it
    go_on.count_down();
    other.join();
    ends.join();
}

TEST_CASE("no visitor is in a context while it ends, however many come and go") {
    Visits visits;
    std::atomic<int> inside{0};
    std::atomic<bool> ended{false};
    std::atomic<unsigned> wrong{0};
    on_threads(4, [&](unsigned t) {
        for (int i = 0; i < 500; i++) {
            if (t == 0 || (t == 1 && i % 2)) {
                visits.begin_end(&kOne);
                if (ended.exchange(true) || inside)
                    wrong++;
                ended = false;
                visits.finish_end(&kOne);
            } else {
                if (!visits.enter(&kOne))
                    wrong++;
                inside++;
                if (ended)
                    wrong++;
                inside--;
                visits.leave();
            }
        }
    });
    CHECK(wrong == 0);
}
