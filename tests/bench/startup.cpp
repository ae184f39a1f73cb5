// What starting programs costs under cuslice: /bin/true, and a program's first CUDA calls, alone and 300 at once. Runs
// without cuslice; its children run by turns without and with it.
//   cuslice_bench_startup <lib/cuslice> <cuslice_bench_first_call> <empty folder for the fake GPU's books>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/figure.h"

namespace cuslice::bench {
namespace {

constexpr std::uint64_t kLimit = 64ull << 30;

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    std::exit(1);
}

// What a child is started with.
using Variables = std::vector<std::string>;

struct Child {
    pid_t pid = -1;
    int answer = -1;  // what it writes
};

// `go`: the standard input of the child, or -1: it has ours, and what it writes goes where ours goes.
Child start(const std::string& program, const Variables& variables, int go) {
    std::vector<char*> environment;
    for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};

    Child child;
    int out[2];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (go >= 0) {
        if (pipe2(out, O_CLOEXEC) != 0) give_up("pipe");
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

void finish(const Child& child, const char* what) {
    int status = 0;
    if (waitpid(child.pid, &status, 0) != child.pid) give_up("waitpid");
    if (status == 0) return;
    std::fprintf(stderr, "bench: %s ended with status 0x%x\n", what, status);
    std::exit(1);
}

Comparison in_ms(Comparison c) {
    for (double* value : {&c.raw, &c.ours, &c.extra, &c.raw_p99, &c.ours_p99, &c.raw_max, &c.ours_max}) *value /= 1e6;
    return c;
}

void measure_true(const std::string& library) {
    const auto starting = [](Variables variables) {
        return [variables](std::size_t n) {
            for (std::size_t i = 0; i < n; i++) finish(start("/bin/true", variables, -1), "/bin/true");
        };
    };
    const Comparison sides = compare(1000, 1, 1000, starting({}), starting({"LD_PRELOAD=" + library}));
    print_extra("start of /bin/true: more with the library preloaded", in_ms(sides), "ms", Bound::at_most, 0.2);
}

// How long the first calls of so many processes took, each on its own clock, in ms; all begin at once.
std::vector<double> first_calls(int processes, const std::string& program, const Variables& variables, bool limited) {
    std::vector<Child> children;
    std::vector<double> took;
    int go[2];  // all wait for the end of the same pipe, so one close() lets all of them go
    if (pipe2(go, O_CLOEXEC) != 0) give_up("pipe");
    for (int i = 0; i < processes; i++) children.push_back(start(program, variables, go[0]));
    close(go[0]);
    char ready;
    for (const Child& child : children)
        if (read(child.answer, &ready, 1) != 1) give_up("a child that was started");
    close(go[1]);
    for (const Child& child : children) {
        struct {
            std::int64_t start, end;
            std::uint64_t total;
        } answer;
        if (read(child.answer, &answer, sizeof(answer)) != sizeof(answer)) give_up("a child's answer");
        if ((answer.total == kLimit) != limited) {
            std::fprintf(stderr, "bench: a child %s cuslice saw a GPU of %llu bytes\n", limited ? "under" : "without",
                         static_cast<unsigned long long>(answer.total));
            std::exit(1);
        }
        took.push_back(static_cast<double>(answer.end - answer.start) / 1e6);
        close(child.answer);
        finish(child, program.c_str());
    }
    return took;
}

struct Sides {
    std::vector<double> raw, ours;
};

Sides by_turns(int rounds, int processes, const std::string& program, const Variables& raw, const Variables& ours) {
    Sides all;
    for (int round = -1; round < rounds; round++) {
        for (int turn = 0; turn < 2; turn++) {
            const bool limited = (round + turn + 2) % 2 == 1;
            const std::vector<double> took = first_calls(processes, program, limited ? ours : raw, limited);
            std::vector<double>& side = limited ? all.ours : all.raw;
            if (round >= 0) side.insert(side.end(), took.begin(), took.end());  // the first round warms up
        }
    }
    return all;
}

void print_share(const std::string& name, const Sides& all, double share, Bound bound) {
    const double raw = percentile(all.raw, share), ours = percentile(all.ours, share);
    const Comparison sides{raw,
                           ours,
                           ours - raw,
                           percentile(all.raw, 0.99),
                           percentile(all.ours, 0.99),
                           percentile(all.raw, 1),
                           percentile(all.ours, 1)};
    print_extra(name, sides, "ms", bound, 5);
}

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: %s <lib/cuslice> <cuslice_bench_first_call> <folder for the fake GPU's books>\n",
                     arguments[0]);
        return 64;
    }
    const std::string folder = arguments[1], first_call = arguments[2], library = folder + "/libcuslice.so";
    const Variables raw = {"LD_LIBRARY_PATH=" + folder + "/fake", "CUSLICE_FAKE=1xh200",
                           std::string("CUSLICE_FAKE_DIR=") + arguments[3]};
    Variables ours = raw;
    ours.insert(ours.end(), {"LD_PRELOAD=" + library, "CUSLICE_LIMIT=64GiB"});

    const Sides crowd = by_turns(7, 300, first_call, raw, ours);  // on all cores
    if (!pin(0)) return 1;
    const Sides alone = by_turns(200, 1, first_call, raw, ours);
    measure_true(library);
    print_share("first CUDA call, alone: more, p50", alone, 0.5, Bound::at_most);
    print_share("first CUDA call, 300 processes at once: more at p50", crowd, 0.5, Bound::at_most);
    print_share("first CUDA call, 300 processes at once: more at p99", crowd, 0.99, Bound::at_most);
    return 0;
}

}  // namespace
}  // namespace cuslice::bench

int main(int count, char** arguments) { return cuslice::bench::main(count, arguments); }
