// SPDX-License-Identifier: Apache-2.0
// Recordings of processes that are killed: in every instruction of a row, and at random.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "policy/trace/log.h"
#include "tests/allowed.h"
#include "tests/bench/recorded_rows.h"
#include "tests/policy/rounds.h"
#include "tests/policy/trace/recordings.h"

namespace cuslice::trace {
namespace {

constexpr unsigned kThreads = 4;

// Memory that a child shares with the test: how far each of its threads has come.
struct Progress {
    std::atomic<uint64_t> begun[kThreads], done[kThreads];
    std::atomic<bool> working, over;
};

struct Shared {
    Shared() : memory(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        progress = new (memory) Progress{};
    }
    ~Shared() { munmap(memory, sizeof(Progress)); }
    void* memory;
    Progress* progress;
};

void append(Log& log, Progress& progress, unsigned thread, uint64_t number) {
    progress.begun[thread] = number;
    int error = 0;
    if (log.append(row_of(1000 + thread, number), error) != File::Appended::done)
        _exit(1);
    progress.done[thread] = number;
}

struct Left {
    std::map<unsigned, std::set<uint64_t>> rows;  // by thread
    unsigned torn = 0;
};

// Every row in there is as it was written.
Left left_in(const std::string& path) {
    Left left;
    const std::string text = read(path);
    if (bench::is_compact(text)) {
        std::vector<bench::RecordedRow> rows;
        std::string why;
        REQUIRE(bench::read_compact(text, rows, why));
        for (const auto& row : rows) {
            const Row expected = row_of(row.thread, row.address);
            const bool same = row.bytes == expected.bytes && row.time == expected.time && row.gpu == kGpu &&
                              row.stream == expected.stream && row.held == std::to_string(expected.held);
            if (!same)
                FAIL("record of " << row.address);
            left.rows[row.thread - 1000].insert(row.address);
        }
        return left;
    }
    std::istringstream lines(text);
    std::string line, before;
    std::getline(lines, line);
    for (; std::getline(lines, line) && !lines.eof(); before = line) {
        if (line.empty())
            continue;
        if (bench::is_torn(before, line)) {
            left.torn++;
            continue;
        }
        const auto pointer = line.find(",0x");
        if (pointer == line.npos)
            FAIL(line);
        const auto number = std::stoull(line.substr(pointer + 3), nullptr, 16);
        const auto thread = static_cast<uint32_t>(std::stoul(line));
        RowText whole;
        write_row(whole, row_of(thread, number));
        if (line + "\n" != whole.view())
            FAIL(line);
        left.rows[thread - 1000].insert(number);
    }
    return left;
}

// All rows that were written are there, and perhaps the one that was being written.
void check(const Left& left, const Progress& progress) {
    for (unsigned thread = 0; thread < kThreads; thread++) {
        const auto found = left.rows.find(thread);
        const uint64_t rows = found == left.rows.end() ? 0 : found->second.size();
        const uint64_t done = progress.done[thread], begun = progress.begun[thread];
        if (rows < done || rows > begun)
            FAIL("thread " << thread << ": " << rows << " rows of " << done << " to " << begun);
        if (rows != 0 && *found->second.rbegin() != rows)
            FAIL("thread " << thread << ": a row too few in between");
    }
    CHECK(left.torn <= kThreads);
}

std::string end_of(Form form) { return form == Form::csv ? "a.csv" : "a.trace"; }

}  // namespace

TEST_CASE("killed in any instruction of a row, a process leaves it whole, or so that it is known as torn") {
    if (!tests::can_trace())
        return;
    const Form form = GENERATE(Form::csv, Form::compact);
    const auto step = static_cast<unsigned>(tests::instruction_step());
    unsigned whole = 0, torn = 0, most = 0;
    for (unsigned instructions = 0;; instructions += step) {
        const TestFolder folder;
        const Shared shared;
        Progress& progress = *shared.progress;
        static Log log;
        const pid_t child = fork();
        if (child == 0) {
            Reason why;
            if (!log.make(folder.at(end_of(form)), why))
                _exit(1);
            for (uint64_t number = 1; number <= 2; number++)
                append(log, progress, 0, number);
            ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            raise(SIGSTOP);
            progress.working = true;
            append(log, progress, 0, 3);
            progress.over = true;
            _exit(0);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFSTOPPED(status));
        for (unsigned i = 0; i < instructions && !progress.over;) {
            REQUIRE(ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0);
            REQUIRE(waitpid(child, &status, 0) == child);
            if (!WIFSTOPPED(status))
                break;
            i += progress.working;
            most = std::max(most, i);
        }
        const bool over = progress.over;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        const Left left = left_in(folder.at(end_of(form)));
        check(left, progress);
        whole += left.rows.at(0).size() == 3;
        torn += left.torn;
        if (over)
            break;
    }
    CHECK(most > 100);
    CHECK(whole > 1);
    // A torn record shows nothing of itself.
    CHECK((form == Form::csv ? torn > 5 : torn == 0));
}

TEST_CASE("four threads that are killed at any moment lose no row that they had written, and tear none") {
    const Form form = GENERATE(Form::csv, Form::compact);
    std::mt19937 random(38);
    for (unsigned round = 0; round < static_cast<unsigned>(tests::rounds(20, 3000)); round++) {
        const TestFolder folder;
        const Shared shared;
        Progress& progress = *shared.progress;
        static Log log;
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);  // it writes until it is killed
            Reason why;
            if (!log.make(folder.at(end_of(form)), why))
                _exit(1);
            std::vector<std::thread> threads;
            for (unsigned thread = 0; thread < kThreads; thread++)
                threads.emplace_back([&, thread] {
                    for (uint64_t number = 1;; number++)
                        append(log, progress, thread, number);
                });
            for (std::thread& thread : threads)
                thread.join();
        }
        const uint64_t rows = random() % 1500;
        while (progress.done[0] < rows)
            sched_yield();
        usleep(random() % 200);
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        REQUIRE(WIFSIGNALED(status));
        check(left_in(folder.at(end_of(form))), progress);
    }
}

}  // namespace cuslice::trace
