// SPDX-License-Identifier: Apache-2.0
// Programs that have nothing to do with CUDA don't notice the library: the same output byte for byte, the same exit
// code, and nothing of theirs changed.
#include <cstdio>

#include "tests/catch.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

// Settings that any reading of them would complain about.
const Words kBad{"CUSLICE_LIMIT=nonsense", "CUSLICE_CONFIG=/nonexistent/cuslice.toml", "CUSLICE_DRIVER=/nonexistent",
                 "CUSLICE_FAKE=1xnonsense"};

bool there(const std::string& program) {
    return run({"/bin/sh", "-c", "command -v " + program}, plain()).exit_code == 0;
}

Outcome shell(const std::string& script, const std::string& folder, bool preloaded) {
    // Only what the script starts is preloaded, and the shell itself: as a user has it who exports the variable.
    Words environment = plain({"HOME=" + folder});
    environment.insert(environment.end(), kBad.begin(), kBad.end());
    if (preloaded)
        environment.push_back("LD_PRELOAD=" + preload_list());
    return run({"/bin/bash", "-c", script}, environment, folder);
}

// Where two texts differ first, for a message that a person can read; empty if they are the same byte for byte.
std::string first_difference(const std::string& expected, const std::string& text) {
    if (expected == text)
        return "";
    const Words a = split_lines(expected), b = split_lines(text);
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
        if (a[i] != b[i])
            return "line " + std::to_string(i) + ": '" + a[i] + "' became '" + b[i] + "'";
    return std::to_string(expected.size()) + " bytes became " + std::to_string(text.size());
}

struct Case {
    const char* program;
    std::string script;
};

std::vector<Case> cases() {
    return {
        {"ls", "ls -lan --time-style=full-iso /usr/bin /etc; ls /nonexistent; echo $?"},
        {"bash",
         "for i in $(seq 300); do (echo \"$i\" | cat) ; done; ulimit -a; umask; trap; echo \"${BASH_VERSION}\"; "
         "f() { echo err >&2; return 7; }; f; echo $?; exec 2>&1; set -o; shopt; declare -p HOME; exit 42"},
        {"python3",
         "python3 - <<'END'\n"
         "import os, subprocess, sys, threading, ctypes, signal, multiprocessing\n"
         "print(sys.version, sys.argv, os.environ.get('HOME'), signal.getsignal(signal.SIGCHLD))\n"
         "print(threading.active_count(), sorted(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')))\n"
         "print(subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 5'], capture_output=True))\n"
         "threads = [threading.Thread(target=lambda: sum(range(1000))) for _ in range(16)]\n"
         "[t.start() for t in threads]; [t.join() for t in threads]\n"
         "with multiprocessing.get_context('fork').Pool(3) as pool: print(pool.map(abs, range(-50, 0)))\n"
         "print(ctypes.CDLL('libm.so.6').abs(-3), file=sys.stderr)\n"
         "try: ctypes.CDLL('libnosuch.so.1')\n"
         "except OSError as e: print(e)\n"
         "sys.exit(9)\n"
         "END\n"},
        {"git",
         "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z GIT_CONFIG_NOSYSTEM=1; "
         "rm -rf r && git -c init.defaultBranch=m init r && cd r && git config user.email a@b && git config user.name "
         "n; "
         "for i in 1 2 3; do echo $i >f$i; git add . && git commit -qm \"c $i\"; done; git log --stat; git status; "
         "git gc 2>&1; git nosuchcommand; echo $?"},
        {"make",
         "printf '%s\\n' 'all: $(shell seq -f t%g 200)' '\t@cat t* | cksum' 't%:' "
         "'\t@for i in 1 2 3; do echo $@ $$i | tr a-z A-Z; done >$@' >Makefile; rm -f t*; make -j4; make nosuch; echo "
         "$?"},
    };
}

TEST_CASE("programs without CUDA are the same byte for byte") {
    for (const Case& one : cases()) {
        if (!there(one.program)) {
            skip(std::string(one.program) + ", which is not here");
            continue;
        }
        CAPTURE(one.program);
        const Folder folder;
        const Outcome without = shell(one.script, folder.path(), false), with = shell(one.script, folder.path(), true);
        CHECK(without.exit_code == with.exit_code);
        CHECK(first_difference(without.out, with.out) == "");
        CHECK(first_difference(without.err, with.err) == "");
        CHECK(without.out.size() > 10);
    }
}

TEST_CASE("a process that never calls CUDA leaves no trace of us but the mapping") {
    for (const char* where : {"/proc/self/status", "/proc/self/limits", "/proc/self/cgroup"}) {
        // Each line that doesn't count or identify the process itself.
        const auto read = [&](bool preloaded) {
            Words environment = plain(kBad);
            if (preloaded)
                environment.push_back("LD_PRELOAD=" + preload_list());
            std::string kept;
            for (const std::string& line : split_lines(run({"/bin/cat", where}, environment).out)) {
                bool counts = !kSanitizer.empty() && line.rfind("SigCgt", 0) == 0;  // a sanitizer catches signals
                for (const char* name : {"Pid", "Tgid", "Ngid", "PPid", "Vm", "Rss", "NSpid", "NSpgid", "NStgid",
                                         "NSsid", "SigQ", "volun", "nonvol", "Cpus_", "Mems_", "Huge"})
                    counts = counts || line.rfind(name, 0) == 0;
                if (!counts)
                    kept += line + "\n";
            }
            return kept;
        };
        CAPTURE(where);
        CHECK(read(false) == read(true));
    }
}

TEST_CASE("also a program that does call CUDA keeps its threads, descriptors, signals and umask") {
    // The fake driver's and NVML's own descriptors are there both times: cuslice asks NVML, as most programs do.
    const Folder books;
    std::string said[2][2];
    for (const int limited : {0, 1}) {
        Guest guest(Guest::route("dlopen=libcuda.so.1"),
                    limited ? sliced("1xt4", books.path(), {"CUSLICE_LIMIT=2GiB"}) : raw("1xt4", books.path()));
        said[limited][0] = guest.ask("self");
        for (const char* line :
             {"init", "retain 0", "nvml", "nvmlmemory 0", "alloc a 1048576", "fill 1073741824", "free a"})
            guest.ask(line);
        said[limited][1] = guest.ask("self");
        CHECK(guest.finish() == 0);
    }
    CHECK(said[0][0] == said[1][0]);
    CHECK(said[0][1] == said[1][1]);
    CHECK(said[1][0].find("threads 1 open") == 0);
}

TEST_CASE("stdout is never written to, whatever is said") {
    const Folder books;
    const Outcome outcome =
        run({"/bin/sh", "-c", "printf 'init\\nretain 0\\nfill 1073741824\\n' | " + kGuests + "/guest_linked linked"},
            sliced("1xt4", books.path(), {"CUSLICE_LIMIT=2GiB", "CUSLICE_LOG=debug"}));
    CHECK(outcome.out.substr(0, 5) == "0\n0\n2");
    CHECK(split_lines(outcome.out).size() == 3);
    CHECK(outcome.err.find("cuslice: ") != std::string::npos);
    for (const std::string& line : split_lines(outcome.err))
        CHECK(line.rfind("cuslice", 0) == 0);
}

}  // namespace
}  // namespace cuslice::tests
