// SPDX-License-Identifier: Apache-2.0
// Programs and libraries with a static CUDA runtime, which `--redirect-runtime=program` and `=all` lead to a shared
// one. The static runtime is the tests' own stand-in, whose functions all answer 103, as NVIDIA's do on a driver that
// isn't NVIDIA's.
#include <filesystem>
#include <string>

#include "tests/preload/failing_plan.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kPrograms = std::string(CUSLICE_TEST_STATIC) + "/";
const Words kRedirect = {"--redirect-runtime=program"}, kRedirectAll = {"--redirect-runtime=all"};
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

// Opens libraries, and has a line about the GPUs that each of them sees.
struct OpenerMachine : RedirectMachine {
    using RedirectMachine::RedirectMachine;

    Outcome opened(const std::string& how, const Words& libraries, const Words& options = {"--limit", "1GiB"}) const {
        Words program = {kPrograms + "static_opener", how};
        for (const std::string& library : libraries)
            program.push_back(library.find('/') == library.npos ? path_of(library) : library);
        return outcome(joined(kRedirectAll, options), program);
    }
    static std::string path_of(const std::string& library) { return kPrograms + "libstatic_library" + library + ".so"; }
    // Why a library keeps its runtime, which it can be asked about all the same.
    std::string kept(const std::string& library) const {
        const Outcome all = opened("open", {library});
        CHECK(all.out == kLibraryUnable);
        const std::string begin =
            "cuslice: --redirect-runtime: " + path_of(library) + " keeps its static CUDA runtime: ";
        const bool said = all.err.starts_with(begin) && all.err.find('\n') == all.err.size() - 1;
        return said ? all.err.substr(begin.size(), all.err.size() - begin.size() - 1) : all.err;
    }
    static inline const std::string kLibraryUnable = "0 GPUs, error 103, the last has 0 MiB, early: 0\n";
};

// Libraries in LD_AUDIT have a namespace of their own, where a sanitizer's runtime would be a second one.
bool cannot_audit() {
    if (!kSanitizer.empty())
        skip("a sanitizer's runtime can't be in two namespaces of the loader");
    return !kSanitizer.empty();
}

std::string limited(int gpu, int mib) {
    return "GPU " + std::to_string(gpu) + ": " + std::to_string(mib) + " MiB, 64 MiB: 0 on GPU " + std::to_string(gpu) +
           ", all: 2, free: 0\n";
}
const std::string kLibrarySees = "2 GPUs, error 0, the last has 1024 MiB, early: 0\n";
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

TEST_CASE("exceptions go past calls of the shared runtime, and end within what it calls") {
    const RedirectMachine machine("1xlaptop-2g");
    CHECK(machine.outcome(kRedirect, {kPrograms + "static_exceptions"}).out ==
          "freed: 0\ncaught: cudaErrorMemoryAllocation, in the callback: 1\n");
}

TEST_CASE("programs behind a shell and behind another cuslice run are led elsewhere, too") {
    const RedirectMachine machine("2xlaptop-2g");
    const Words options = joined(kRedirect, {"--limit", "1GiB"});
    const std::string program = kPrograms + "static_pie";
    CHECK(machine.outcome(options, {"/bin/sh", "-c", program + "; true"}).out == kTwoGpus);
    CHECK(machine.outcome(options, {kLaunch, "run", "--", program}).out == kTwoGpus);
    CHECK(machine.outcome(options, {kLaunch, "run", "--redirect-runtime=no", "--", program}).out == kUnable);
}

TEST_CASE("a library's own static runtime is left as it is, unless all are to be led elsewhere") {
    const RedirectMachine machine("2xlaptop-2g");
    CHECK(machine.printed({"--limit", "1GiB"}, "static_beside") == kTwoGpus + "in the library: 103\n");
    if (cannot_audit())
        return;
    const Words options = joined(kRedirectAll, {"--limit", "1GiB"});
    CHECK(machine.outcome(options, {kPrograms + "static_beside", "ask"}).out == kTwoGpus + "in the library: 0\n");
}

TEST_CASE("libraries that a program opens see limits and virtual GPUs, however they are opened") {
    if (cannot_audit())
        return;
    const OpenerMachine machine("2xlaptop-2g");
    CHECK(machine.opened("open", {"", "_early", "_12"}).out == kLibrarySees + kLibrarySees + kLibrarySees);
    CHECK(machine.opened("deepbind", {"_early", ""}).out == kLibrarySees + kLibrarySees);
    CHECK(machine.opened("fork", {""}).out == kLibrarySees + kLibrarySees);
    CHECK(machine.opened("threads", {""}).out == "8 times " + kLibrarySees);
    CHECK(machine.opened("threads", {"_early"}).out == "8 times " + kLibrarySees);
    const Outcome split = machine.opened("open", {"_early"}, {"--gpus", "0", "--split", "0=512MiB+1GiB"});
    CHECK(split.out == kLibrarySees);
    CHECK(split.err.empty());
}

TEST_CASE("a library that is opened and closed again and again leaves nothing behind") {
    if (cannot_audit())
        return;
    const OpenerMachine machine("2xlaptop-2g");
    CHECK(machine.opened("again", {""}).out == kLibrarySees + kLibrarySees + "mappings: 0 more\n");
}

TEST_CASE("a library whose runtime can't be left aside is as before, and one line says why") {
    if (cannot_audit())
        return;
    const OpenerMachine machine("2xlaptop-2g");
    CHECK(machine.kept("_11") == "it is none of CUDA 12 or 13");
    CHECK(machine.kept("_two_names").ends_with(" lie at one place"));
    CHECK(machine.kept("_too_short") == "its cudaEventQuery is too short to be led elsewhere");
    // NVIDIA's own libraries are stripped.
    const Outcome stripped = machine.opened("open", {"_stripped"});
    CHECK(stripped.out == OpenerMachine::kLibraryUnable);
    CHECK(stripped.err.empty());
}

TEST_CASE("a library's function that the fake GPU's runtime lacks does not keep it from the others") {
    if (cannot_audit())
        return;
    const OpenerMachine machine("2xlaptop-2g");
    CHECK(machine.opened("open", {"_newer"}).out == kLibrarySees);
}

TEST_CASE("where a library's shared runtime is gone before its first call, its calls fail and one line says so") {
    if (cannot_audit())
        return;
    const OpenerMachine machine("1xlaptop-2g");
    const std::filesystem::path runtime = std::filesystem::path(machine.books.path()) / "libcudart.so.13";
    std::filesystem::copy_file(kFakeFolder + "/libcudart.so.13", runtime);
    const Outcome outcome = run({kLaunch, "run", kRedirectAll[0], "--runtime=" + runtime.string(), "--",
                                 kPrograms + "static_opener", "gone", OpenerMachine::path_of(""), runtime.string()},
                                plain());
    CHECK(outcome.exit_code == 0);
    const std::string failed = "0 GPUs, error 303, the last has 0 MiB, early: 0\n";
    CHECK(outcome.out == failed + failed);
    const std::string line = "cuslice: --redirect-runtime: " + OpenerMachine::path_of("") + ": " + runtime.string() +
                             " can't be loaded: its calls fail with cudaErrorSharedObjectInitFailed\n";
    const size_t at = outcome.err.find(line);
    CHECK(at != std::string::npos);
    CHECK(outcome.err.find(line, at + 1) == std::string::npos);
}

TEST_CASE("LD_AUDIT is the user's own but for the library that is put there") {
    if (cannot_audit())
        return;
    const RedirectMachine machine("1xlaptop-2g");
    const auto audited = [&](const Words& options, const Words& more = {}) {
        return machine.outcome(options, {"/bin/sh", "-c", "echo \"$LD_AUDIT\""}, more).out;
    };
    CHECK(audited(kRedirect) == "\n");
    CHECK(audited(kRedirectAll).ends_with("/libcuslice-audit.so\n"));
    const std::string ours = audited(kRedirectAll), other = "LD_AUDIT=" + kGuests + "/libguest_audit.so";
    CHECK(audited(kRedirect, {other}) == other.substr(9) + "\n");
    CHECK(audited(kRedirectAll, {other}) == ours.substr(0, ours.size() - 1) + ":" + other.substr(9) + "\n");
    // Within another one the inner option counts.
    const auto within = [&](const std::string& option) {
        return machine.outcome(kRedirectAll, {kLaunch, "run", option, "--", "/bin/sh", "-c", "echo \"$LD_AUDIT\""}).out;
    };
    CHECK(within("--redirect-runtime=no") == "\n");
    CHECK(within("--redirect-runtime=program") == "\n");
    CHECK(within("--redirect-runtime=all") == ours);
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

TEST_CASE("each call into the C library fails once: a library has the shared runtime, or an error and a line") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime stands between the library and the C library");
    const OpenerMachine machine("2xlaptop-2g");
    const auto outcome = [&](const FailingPlan& plan) {
        return machine.outcome(
            joined(kRedirectAll, {"--limit", "1GiB"}),
            {kPrograms + "static_opener", "open", OpenerMachine::path_of(""), OpenerMachine::path_of("_12")},
            {"LD_PRELOAD=" + kGuests + "/libguest_failing_call.so", plan.variable()});
    };
    FailingCall wanted;
    wanted.of = CallsOf::redirect;
    const FailingPlan counting(wanted);
    REQUIRE(outcome(counting).out == kLibrarySees + kLibrarySees);
    const uint64_t calls = counting.call().calls;
    CHECK(calls > 5);
    const std::string failed = "0 GPUs, error 303, the last has 0 MiB, early: 0\n";
    for (wanted.failing = 1; wanted.failing <= calls; wanted.failing++) {
        const FailingPlan plan(wanted);
        const Outcome one = outcome(plan);
        INFO(plan.call().name << ", call " << wanted.failing << "\n" << one.out << one.err);
        const bool told = one.err.find(" can't be loaded: its calls fail with ") != std::string::npos;
        const bool one_failed = one.out == failed + kLibrarySees || one.out == kLibrarySees + failed;
        CHECK((told ? one_failed : one.out == kLibrarySees + kLibrarySees));
    }
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
