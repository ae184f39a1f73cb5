// SPDX-License-Identifier: Apache-2.0
// The file of time, read by others than its timekeeper: one that lives, and one that has ended.

#include "fake/time/reader.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "fake/time/figures.h"
#include "fake/time/futex.h"
#include "tests/catch.h"
#include "tests/fake/child.h"

using namespace cuslice::fake;
using fake_test::Folder;

namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr int kOne = 11, kOther = 12;
const std::string kGpu = "GPU-a";

TimeMapping made_in(const std::string& folder) {
    TimeMapping mapping;
    std::string error;
    REQUIRE(mapping.create(folder, true, error));
    return mapping;
}

/// A machine with one GPU, on the virtual clock, and its timekeeper's writing.
class Machine {
  public:
    explicit Machine(const std::string& folder) : mapping_(made_in(folder)), figures_(*mapping_) {
        kGpu.copy(mapping_->gpus[0].uuid, kGpu.size());
        mapping_->gpus[0].claim = 2;
        mapping_->header.now = 1000 * kTimeSpan;
    }
    ~Machine() { mapping_.close(); }

    TimeHeader& header() { return mapping_->header; }
    void add_context(uint32_t context, int pid, TimeState state = TimeState::open) {
        mapping_->contexts[context].pid = pid;
        mapping_->contexts[context].state = state;
    }
    /// The context has the engine from now on for so long.
    void pass(uint32_t context, Engine engine, Time length) {
        const Time begin = header().now;
        figures_.add(context, engine, begin, begin + length);
        header().now = begin + length;
    }
    void rest(Time length) { header().now += length; }
    void flush() { figures_.flush(); }

  private:
    TimeMapping mapping_;
    TimeFigures figures_;
};

Time of(const BusyTimes& busy, Engine engine) { return busy[static_cast<size_t>(engine)]; }

/// Starts a timekeeper of a machine where process kOne has had the GPU for 5 ms. It runs `then` until it is killed.
template <typename F>
pid_t keeper(const std::string& folder, F&& then) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        TimeMapping lock;
        std::string error;
        if (!lock.open_lock(folder, error) || !lock.lock(0))
            _exit(1);
        Machine machine(folder);
        machine.add_context(0, kOne);
        machine.pass(0, Engine::compute, 5 * kMillisecond);
        if (write(ready[1], "x", 1) == 1)
            then(machine);
        _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return child;
}

void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

}  // namespace

TEST_CASE("reader: where no work was timed there is nothing to read, and nothing is made") {
    const Folder folder;
    TimeReader reader;
    CHECK_FALSE(reader.refresh(folder.path()));
    CHECK(access((folder.path() + "/time.lock").c_str(), F_OK) != 0);
}

TEST_CASE("reader: a process has what all its contexts had, also those that have ended") {
    const Folder folder;
    Machine machine(folder.path());
    machine.add_context(0, kOne);
    machine.add_context(1, kOther);
    machine.add_context(2, kOne, TimeState::ended);
    machine.pass(0, Engine::compute, 5 * kMillisecond);
    machine.pass(1, Engine::compute, 2 * kMillisecond);
    machine.pass(2, Engine::compute, kMillisecond);
    machine.pass(0, Engine::copy_in, 3 * kMillisecond);
    machine.pass(2, Engine::copy_out, 4 * kMillisecond);

    TimeReader reader;
    REQUIRE(reader.refresh(folder.path()));
    const auto one = reader.total(kGpu, kOne), other = reader.total(kGpu, kOther);
    REQUIRE(one);
    REQUIRE(other);
    CHECK(of(*one, Engine::compute) == 6 * kMillisecond);
    CHECK(of(*one, Engine::copy_in) == 3 * kMillisecond);
    CHECK(of(*one, Engine::copy_out) == 4 * kMillisecond);
    CHECK(*other == BusyTimes{0, 2 * kMillisecond, 0, 0});
    CHECK_FALSE(reader.total(kGpu, kOne + kOther));
    CHECK_FALSE(reader.total("GPU-b", kOne));
}

TEST_CASE("reader: the last moments are a GPU's and each process's, to the nanosecond where nothing is cut") {
    const Folder folder;
    Machine machine(folder.path());
    machine.add_context(0, kOne);
    machine.add_context(1, kOther);
    machine.rest(kMillisecond);
    machine.pass(0, Engine::compute, 250 * kMillisecond);
    machine.pass(1, Engine::compute, 150 * kMillisecond);
    machine.rest(kMillisecond);

    TimeReader reader;
    REQUIRE(reader.refresh(folder.path()));
    CHECK(of(reader.busy_within(kGpu, 1000 * kMillisecond), Engine::compute) == 400 * kMillisecond);
    CHECK(of(reader.busy_within(kGpu, kOne, 1000 * kMillisecond), Engine::compute) == 250 * kMillisecond);
    CHECK(of(reader.busy_within(kGpu, kOther, 1000 * kMillisecond), Engine::compute) == 150 * kMillisecond);
    // Where a span is cut its busy time is, too: 100 ms of the one, 99 of the other.
    CHECK(of(reader.busy_within(kGpu, 252 * kMillisecond), Engine::compute) == 251 * kMillisecond);
    CHECK(of(reader.busy_within(kGpu, 352 * kMillisecond), Engine::compute) == 350'500'000);
    CHECK(reader.busy_within("GPU-b", 1000 * kMillisecond) == BusyTimes{});

    machine.rest(898 * kMillisecond);
    CHECK(of(reader.busy_within(kGpu, 1000 * kMillisecond), Engine::compute) == 101 * kMillisecond);
    machine.rest(200 * kMillisecond);
    CHECK(reader.busy_within(kGpu, 1000 * kMillisecond) == BusyTimes{});
}

TEST_CASE("reader: of a long time it knows the end") {
    const Folder folder;
    Machine machine(folder.path());
    machine.add_context(0, kOne);
    machine.pass(0, Engine::compute, 10 * kTimeKept);

    TimeReader reader;
    REQUIRE(reader.refresh(folder.path()));
    CHECK(of(reader.busy_within(kGpu, kOne, 2 * kTimeKept), Engine::compute) == kTimeKept);
    CHECK(of(*reader.total(kGpu, kOne), Engine::compute) == 10 * kTimeKept);
}

TEST_CASE("reader: turns are told in their order, the last of them once there are too many") {
    const Folder folder;
    Machine machine(folder.path());
    machine.add_context(0, kOne);
    machine.add_context(1, kOther);
    const Time begin = machine.header().now;
    machine.pass(0, Engine::compute, 2 * kMillisecond);
    machine.pass(0, Engine::compute, kMillisecond);  // goes on
    machine.pass(1, Engine::compute, kMillisecond);
    machine.flush();

    TimeReader reader;
    REQUIRE(reader.refresh(folder.path()));
    const std::vector<Turn> turns = reader.turns();
    REQUIRE(turns.size() == 2);
    CHECK(turns[0].uuid == kGpu);
    CHECK(turns[0].pid == kOne);
    CHECK(turns[0].engine == Engine::compute);
    CHECK(turns[0].begin == begin);
    CHECK(turns[0].end == begin + 3 * kMillisecond);
    CHECK(turns[1].pid == kOther);

    for (uint32_t i = 0; i <= kTimeTurns; i++)
        machine.pass(i % 2, Engine::compute, kMillisecond);
    machine.flush();
    // One less than there is room for: the timekeeper could be writing the next.
    CHECK(reader.turns().size() == kTimeTurns - 1);
    CHECK(reader.turns().back().end == machine.header().now);
}

TEST_CASE("reader: a timekeeper that lives completes its figures first") {
    const Folder folder;
    const pid_t child = keeper(folder.path(), [](Machine& machine) {
        while (machine.header().figures_asked == machine.header().figures_told)
            usleep(1000);
        machine.flush();
        futex_raise(machine.header().figures_told);
        pause();
    });
    TimeReader reader;
    REQUIRE(reader.refresh(folder.path()));
    CHECK(reader.turns().size() == 1);
    end(child);
}

TEST_CASE("reader: a timekeeper that is stopped, or has ended, leaves what it had written") {
    const Folder folder;
    const pid_t child = keeper(folder.path(), [](Machine&) { pause(); });
    TimeReader reader;
    for (const bool lives : {true, false}) {
        REQUIRE(reader.refresh(folder.path()));
        CHECK(reader.turns().empty());
        CHECK(reader.total(kGpu, kOne) == BusyTimes{0, 5 * kMillisecond, 0, 0});
        if (lives)
            end(child);
    }
}

TEST_CASE("reader: the file of a later timekeeper takes the place of the earlier one's") {
    const Folder folder;
    TimeReader reader;
    {
        Machine machine(folder.path());
        machine.add_context(0, kOne);
        REQUIRE(reader.refresh(folder.path()));
        CHECK(reader.total(kGpu, kOne));
    }
    Machine machine(folder.path());
    machine.add_context(0, kOther);
    REQUIRE(reader.refresh(folder.path()));
    CHECK_FALSE(reader.total(kGpu, kOne));
    CHECK(reader.total(kGpu, kOther));
}

TEST_CASE("reader: a file that is none is not read") {
    const Folder folder;
    TimeReader reader;
    const std::string path = folder.path() + "/time";
    const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    CHECK_FALSE(reader.refresh(folder.path()));
    REQUIRE(ftruncate(file, sizeof(TimeFile)) == 0);
    CHECK_FALSE(reader.refresh(folder.path()));
    close(file);
}
