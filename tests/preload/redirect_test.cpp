// SPDX-License-Identifier: Apache-2.0
// Programs with a static CUDA runtime, which `--redirect-runtime=program` leads to a shared one. The static runtime is
// the tests' own stand-in, whose functions all answer 103, as NVIDIA's do on a driver that isn't NVIDIA's.
#include <filesystem>

#include "tests/preload/failing_plan.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kPrograms = std::string(CUSLICE_TEST_STATIC) + "/";
const Words kRedirect = {"--redirect-runtime=program"};
const std::string kUnable = "0 GPUs, error 103\n";

struct RedirectMachine : Machine {
    using Machine::Machine;

    Outcome outcome(const Words& options, const Words& program, const Words& more = {}) const {
        const Outcome outcome = run(launch(options, program), outside(more));
        INFO(outcome.err);
        CHECK(outcome.exit_code == 0);
        return outcome;
    }
    std::string printed(const Words& options, const std::string& program, const std::string& how = "ask") const {
        const Outcome all = outcome(joined(kRedirect, options), {kPrograms + program, how});
        INFO(all.err);
        // A refused allocation has a line, and it is the only one.
        CHECK(all.err.find("keeps its static") == std::string::npos);
        return all.out;
    }
    // Why it keeps its runtime, the launcher's options but this one left out.
    std::string kept(const std::string& program, const Words& more = {}) const {
        const Outcome all = outcome(kRedirect, {kPrograms + program, "ask"}, more);
        CHECK(all.out == kUnable);
        const std::string begin =
            "cuslice: --redirect-runtime: " + kPrograms + program + " keeps its static CUDA runtime: ";
        const size_t at = all.err.find(begin), end = all.err.find('\n', at);
        CHECK(all.err.find("--redirect-runtime", end) == std::string::npos);
        return at == std::string::npos ? all.err : all.err.substr(at + begin.size(), end - at - begin.size());
    }
};

std::string limited(int gpu, int mib) {
    return "GPU " + std::to_string(gpu) + ": " + std::to_string(mib) + " MiB, 64 MiB: 0 on GPU " + std::to_string(gpu) +
           ", all: 2, free: 0\n";
}
const std::string kTwoGpus = "2 GPUs, error 0\n" + limited(0, 1024) + limited(1, 1024);

}  // namespace

TEST_CASE("a program's static runtime sees limits and virtual GPUs, however the program is linked") {
    const RedirectMachine machine("2xlaptop-2g");
    const std::string program = GENERATE("static_pie", "static_fixed", "static_exporting", "static_lto", "static_12");
    CAPTURE(program);
    CHECK(machine.printed({"--limit", "1GiB"}, program) == kTwoGpus);
    CHECK(machine.printed({"--limit", "1GiB", "--allocator", "growth"}, program) == kTwoGpus);
    CHECK(machine.printed({"--gpus", "0", "--split", "0=512MiB+1GiB"}, program) ==
          "2 GPUs, error 0\n" + limited(0, 512) + limited(1, 1024));
}

TEST_CASE("forks, programs that they become, and calls before main reach the shared runtime as well") {
    const RedirectMachine machine("2xlaptop-2g");
    const Words limit = {"--limit", "1GiB"};
    CHECK(machine.printed(limit, "static_pie", "fork") == kTwoGpus);
    CHECK(machine.printed(limit, "static_pie", "exec") == kTwoGpus);
    CHECK(machine.printed(limit, "static_early") == kTwoGpus + "before main: 0\n");
}

TEST_CASE("programs behind a shell and behind another cuslice run are led elsewhere, too") {
    const RedirectMachine machine("2xlaptop-2g");
    const Words options = joined(kRedirect, {"--limit", "1GiB"});
    const std::string program = kPrograms + "static_pie";
    CHECK(machine.outcome(options, {"/bin/sh", "-c", program + "; true"}).out == kTwoGpus);
    CHECK(machine.outcome(options, {kLaunch, "run", "--", program}).out == kTwoGpus);
    CHECK(machine.outcome(options, {kLaunch, "run", "--redirect-runtime=no", "--", program}).out == kUnable);
}

TEST_CASE("a library's own static runtime is left as it is") {
    const RedirectMachine machine("2xlaptop-2g");
    CHECK(machine.printed({"--limit", "1GiB"}, "static_beside") == kTwoGpus + "in the library: 103\n");
}

TEST_CASE("without the option not one byte of a program's code is written") {
    const RedirectMachine machine("1xlaptop-2g");
    const std::string program = GENERATE("static_pie", "static_fixed");
    const auto code = [&](const Words& options) { return machine.outcome(options, {kPrograms + program, "code"}).out; };
    CHECK(code({}).starts_with("none of "));
    CHECK(code({"--split", "0=2"}).starts_with("none of "));
    CHECK(code({"--redirect-runtime=no"}).starts_with("none of "));
    CHECK(code(kRedirect).starts_with("some of "));
}

TEST_CASE("a program whose runtime can't be left aside runs as before, and one line says why") {
    const RedirectMachine machine("1xlaptop-2g");
    CHECK(machine.kept("static_stripped") == "it is stripped of its symbol table");
    CHECK(machine.kept("static_11") == "it is none of CUDA 12 or 13");
    CHECK(machine.kept("static_two_names").ends_with(" lie at one place"));
    CHECK(machine.kept("static_too_short") == "its cudaEventQuery is too short to be led elsewhere");
}

TEST_CASE("a function that the fake GPU's runtime lacks is refused by name, as others of it are") {
    const RedirectMachine machine("2xlaptop-2g");
    const Outcome all = machine.outcome(joined(kRedirect, {"--limit", "1GiB"}), {kPrograms + "static_newer", "ask"});
    CHECK(all.out == kTwoGpus + "newer: 801, noted: 801\nnewer: 801, noted: 801\n");
    const std::string line =
        "cuslice: fake CUDA runtime 13: cudaNotYetInvented is not supported; it fails with cudaErrorNotSupported "
        "(801)\n";
    const size_t at = all.err.find(line);
    CHECK(at != std::string::npos);
    CHECK(all.err.find(line, at + 1) == std::string::npos);
}

TEST_CASE("a program without a static runtime, or that nobody asks this for, is told nothing") {
    const RedirectMachine machine("1xlaptop-2g");
    CHECK(machine.outcome(kRedirect, {"/bin/true"}).err.empty());
    const Outcome kept = machine.outcome({}, {kPrograms + "static_pie", "ask"});
    CHECK(kept.out == kUnable);
    CHECK(kept.err.find("redirect") == std::string::npos);
}

TEST_CASE("a runtime that can't be meant is refused before anything starts") {
    const RedirectMachine machine("1xlaptop-2g");
    CHECK(machine.refused(joined(kRedirect, {"--runtime=/dev/null"}), 78) ==
          "cuslice: --runtime: /dev/null: a fake GPU has a runtime of its own\n");
    const Outcome outcome = run(
        {kLaunch, "run", kRedirect[0], "--runtime=/nowhere/libcudart.so.13", "--", "/bin/echo", "started"}, plain());
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == "cuslice: --runtime: /nowhere/libcudart.so.13: no such file, or it may not be read\n");
}

TEST_CASE("each call into the C library fails once: the program has the shared runtime, or its own and a line") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime stands between the library and the C library");
    const std::string program = GENERATE("static_pie", "static_fixed");
    const RedirectMachine machine("2xlaptop-2g");
    const auto outcome = [&](const FailingPlan& plan) {
        return machine.outcome(joined(kRedirect, {"--limit", "1GiB"}), {kPrograms + program, "ask"},
                               {"LD_PRELOAD=" + kGuests + "/libguest_failing_call.so", plan.variable()});
    };
    FailingCall wanted;
    wanted.of = CallsOf::redirect;
    const FailingPlan counting(wanted);
    REQUIRE(outcome(counting).out == kTwoGpus);
    const uint64_t calls = counting.call().calls;
    CHECK(calls > 20);
    int kept = 0;
    for (wanted.failing = 1; wanted.failing <= calls; wanted.failing++) {
        const FailingPlan plan(wanted);
        const Outcome one = outcome(plan);
        INFO(plan.call().name << ", call " << wanted.failing << "\n" << one.out << one.err);
        CHECK(plan.call().name[0] != '\0');
        const bool told = one.err.find(" keeps its static CUDA runtime: ") != std::string::npos;
        CHECK(one.out == (told ? kUnable : kTwoGpus));
        kept += told;
    }
    CHECK(kept > 0);
}

}  // namespace cuslice::tests
