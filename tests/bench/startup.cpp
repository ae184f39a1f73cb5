// SPDX-License-Identifier: Apache-2.0
// Measures the cost of starting programs under cuslice: /bin/true, and a program's first CUDA calls, alone and 300 at
// once. Runs without cuslice; its children run by turns without and with it.
//   cuslice_bench_startup <lib/cuslice> <cuslice_bench_first_call> <empty folder for the fake GPU's books>
// Or in a job, all of whose 300 processes share its limit; then its other children ask NVML what cuslice asks it:
//   cuslice run --fake 1xh200 --limit 64GiB --dir <folder> -- cuslice_bench_startup <the same words> job
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/figure.h"

namespace cuslice::bench {
namespace {

constexpr uint64_t kLimit = 64ull << 30;

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    std::exit(1);
}

// The environment of a child.
using Variables = std::vector<std::string>;

struct Child {
    pid_t pid = -1;
    int answer = -1;  // what it writes
};

// `go`: the standard input of the child, or -1: it has ours, and what it writes goes where ours goes.
Child start(const std::string& program, const Variables& variables, int go, const char* word = nullptr) {
    std::vector<char*> environment;
    for (const std::string& variable : variables)
        environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    char* arguments[] = {const_cast<char*>(program.c_str()), const_cast<char*>(word), nullptr};

    Child child;
    int out[2];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (go >= 0) {
        if (pipe2(out, O_CLOEXEC) != 0)
            give_up("pipe");
        posix_spawn_file_actions_adddup2(&actions, go, 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    }
    if (posix_spawn(&child.pid, program.c_str(), &actions, nullptr, arguments, environment.data()) != 0)
        give_up(program.c_str());
    posix_spawn_file_actions_destroy(&actions);
    if (go >= 0) {
        close(out[1]);
        child.answer = out[0];
    }
    return child;
}

// Returns the processor time that it took from its start to its end, in ms.
double finish(const Child& child, const char* what) {
    int status = 0;
    rusage used{};
    if (wait4(child.pid, &status, 0, &used) != child.pid)
        give_up("wait4");
    const auto ms = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
    };
    if (status == 0)
        return ms(used.ru_utime) + ms(used.ru_stime);
    std::fprintf(stderr, "bench: %s ended with status 0x%x\n", what, status);
    std::exit(1);
}

Comparison in_ms(Comparison c) {
    for (double* value : {&c.raw, &c.ours, &c.extra, &c.raw_p99, &c.ours_p99, &c.raw_max, &c.ours_max})
        *value /= 1e6;
    return c;
}

void measure_true(const std::string& library) {
    const auto starting = [](Variables variables) {
        return [variables](size_t n) {
            for (size_t i = 0; i < n; i++)
                finish(start("/bin/true", variables, -1), "/bin/true");
        };
    };
    const Comparison sides = compare(1000, 1, 1000, starting({}), starting({"LD_PRELOAD=" + library}));
    print_extra("start of /bin/true: more with the library preloaded", in_ms(sides), "ms", Bound::at_most, 0.15);
}

// Times of one side, in ms: each process's first calls by its own clock, and its processor time.
struct Side {
    const char* word = nullptr;  // which the program is given
    std::vector<double> took, processor;
};

// Lets so many processes make their first calls at once. Each has a fake GPU of its own: the books of one that all
// share have a lock, and what is to be seen is whether cuslice makes processes wait for each other, not whether the
// fake does.
void first_calls(int processes, const std::string& program, const Variables& variables, const std::string& books,
                 bool limited, Side& side) {
    std::vector<Child> children;
    int go[2];  // all wait for the end of the same pipe, so one close() lets all of them go
    if (pipe2(go, O_CLOEXEC) != 0)
        give_up("pipe");
    for (int i = 0; i < processes; i++) {
        Variables own = variables;
        own.push_back("CUSLICE_FAKE_DIR=" + books + "/" + std::to_string(i));
        children.push_back(start(program, own, go[0], side.word));
    }
    close(go[0]);
    char ready;
    for (const Child& child : children)
        if (read(child.answer, &ready, 1) != 1)
            give_up("a child that was started");
    close(go[1]);
    for (const Child& child : children) {
        struct {
            int64_t start, end;
            uint64_t total;
        } answer;
        if (read(child.answer, &answer, sizeof(answer)) != sizeof(answer))
            give_up("a child's answer");
        if ((answer.total == kLimit) != limited) {
            std::fprintf(stderr, "bench: a child %s cuslice saw a GPU of %llu bytes\n", limited ? "under" : "without",
                         static_cast<unsigned long long>(answer.total));
            std::exit(1);
        }
        side.took.push_back(static_cast<double>(answer.end - answer.start) / 1e6);
        close(child.answer);
        side.processor.push_back(finish(child, program.c_str()));
    }
}

struct Sides {
    Side raw, ours, asking{"nvml", {}, {}};  // the last without cuslice, with what it asks NVML
};

// By turns, in an order that goes round.
Sides by_turns(int rounds, int processes, const std::string& program, const Variables& raw, const Variables& ours,
               const std::string& books) {
    Sides all;
    for (int round = -1; round < rounds; round++) {
        Sides unused;  // the first round warms up
        Sides& sides = round < 0 ? unused : all;
        for (int turn = 0; turn < 3; turn++) {
            const int which = (round + turn + 1) % 3;
            Side& side = which == 0 ? sides.raw : which == 1 ? sides.ours : sides.asking;
            first_calls(processes, program, which == 1 ? ours : raw, books, which == 1, side);
        }
    }
    return all;
}

Comparison sides_of(const std::vector<double>& raw, const std::vector<double>& ours, double share) {
    const double a = percentile(raw, share), b = percentile(ours, share);
    return {a, b, b - a, percentile(raw, 0.99), percentile(ours, 0.99), percentile(raw, 1), percentile(ours, 1)};
}

// With fewer cores than processes each waits for the others' turns: what one of them computes is in the figures of all
// so many times over the cores.
void print_crowd(const char* what, const Sides& crowd) {
    for (const double share : {0.5, 0.99})
        print_extra(std::string(what) + (share < 0.9 ? ": more at p50" : ": more at p99"),
                    sides_of(crowd.raw.took, crowd.ours.took, share), "ms", Bound::none, 0);
    print_extra("the same: more than a program that asks NVML as much, p99",
                sides_of(crowd.asking.took, crowd.ours.took, 0.99), "ms", Bound::at_most, 20);
    print_extra("the same: more processor time a process, p50",
                sides_of(crowd.raw.processor, crowd.ours.processor, 0.5), "ms", Bound::none, 0);
    print_extra("the same: more processor time than one that asks NVML, p50",
                sides_of(crowd.asking.processor, crowd.ours.processor, 0.5), "ms", Bound::none, 0);
}

// Variables that the launcher has left to a program of its job, without the folder of the fake GPU's books: each
// process has its own.
Variables of_job() {
    Variables variables;
    for (char** variable = environ; *variable; variable++) {
        const std::string text = *variable;
        const auto begins = [&](const char* with) { return text.rfind(with, 0) == 0; };
        const bool wanted = begins("CUSLICE_") || begins("LD_");
        if (wanted && !begins("CUSLICE_FAKE_DIR="))
            variables.push_back(text);
    }
    return variables;
}

int main(int count, char** arguments) {
    const bool job = count == 5 && std::string(arguments[4]) == "job";
    if (count != 4 && !job) {
        std::fprintf(stderr,
                     "usage: %s <lib/cuslice> <cuslice_bench_first_call> <folder for the fake GPU's books> [job]\n",
                     arguments[0]);
        return 64;
    }
    const std::string folder = arguments[1], first_call = arguments[2], library = folder + "/libcuslice.so";
    // The job's GPU is everybody's, as the fake reads what it is like in each process.
    const char* const fake = job ? getenv("CUSLICE_FAKE") : nullptr;
    const Variables raw = {"LD_LIBRARY_PATH=" + folder + "/fake",
                           std::string("CUSLICE_FAKE=") + (fake ? fake : "1xh200")};
    Variables ours = raw;
    ours.insert(ours.end(), {"LD_PRELOAD=" + library, "CUSLICE_LIMIT=64GiB"});

    const Sides crowd = by_turns(7, 300, first_call, raw, job ? of_job() : ours, arguments[3]);  // on all cores
    print_crowd(job ? "first CUDA call, 300 processes of a job at once" : "first CUDA call, 300 processes at once",
                crowd);
    if (!pin(0))
        return 1;
    const Sides alone = by_turns(200, 1, first_call, raw, job ? of_job() : ours, arguments[3]);
    print_extra("first CUDA call, alone: more than one that asks NVML, p50",
                sides_of(alone.asking.took, alone.ours.took, 0.5), "ms", Bound::none, 0);
    if (!job)
        measure_true(library);
    print_extra("first CUDA call, alone: more at p50", sides_of(alone.raw.took, alone.ours.took, 0.5), "ms",
                Bound::at_most, 5);
    return 0;
}

}  // namespace
}  // namespace cuslice::bench

int main(int count, char** arguments) { return cuslice::bench::main(count, arguments); }
