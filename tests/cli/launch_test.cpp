// SPDX-License-Identifier: Apache-2.0
// cuslice run, as a child process: what it hands on.
#include <sys/stat.h>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

std::string without_final_newline(std::string text) {
    if (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text;
}

std::string lines_of(const Words& environment) {
    std::string text;
    for (const std::string& line : environment)
        text += line + "\n";
    return text;
}

}  // namespace

TEST_CASE("run becomes the program: the same process, its own exit code, signal, output and arguments") {
    const Folder folder;
    const Words environment = plain_environment(folder.path());
    const Outcome pid = run(launch({"--limit", "1GiB"}, {"/bin/sh", "-c", "echo $$"}), environment);
    CHECK(pid.out == std::to_string(pid.pid) + "\n");
    CHECK(pid.err.empty());
    CHECK(run(launch({}, {"/bin/sh", "-c", "exit 42"}), environment).exit_code == 42);
    CHECK(run(launch({}, {"/bin/sh", "-c", "kill -TERM $$"}), environment).exit_code == 128 + 15);
    CHECK(run(launch({}, {"/bin/echo", "--limit", "a b", "", "*", "--"}), environment).out == "--limit a b  * --\n");
    CHECK(run(launch({}, {"/bin/echo", "[1,2]", "{}", "++", "-h", "--log="}), environment).out ==
          "[1,2] {} ++ -h --log=\n");
    CHECK(run(launch({}, {"/bin/sh", "-c", "echo out; echo err >&2"}), environment).err == "err\n");
    // argv[0] is as written, wherever it was found.
    CHECK(run(launch({}, {"sh", "-c", "cat /proc/$$/cmdline | tr '\\0' ' '"}), environment).out.substr(0, 6) ==
          "sh -c ");
}

TEST_CASE("options end at -- or at the program, and are written with a space or an equals sign") {
    const Folder folder;
    const Words environment = plain_environment(folder.path());
    const auto settings = [&](const Words& words) {
        Words all = {kLauncher, "run"};
        all.insert(all.end(), words.begin(), words.end());
        return run(all, environment).out;
    };
    const std::string show = "echo \"$CUSLICE_SETTINGS\" $0";
    const std::string expected = "1;flag.0 limit * 4GiB --limit zero\n";
    CHECK(settings({"--limit", "4GiB", "--", "sh", "-c", show, "zero"}) == expected);
    CHECK(settings({"--limit=4GiB", "--", "sh", "-c", show, "zero"}) == expected);
    CHECK(settings({"--limit=4GiB", "sh", "-c", show, "zero"}) == expected);
    CHECK(settings({"--limit", "4GiB", "sh", "-c", show, "--", "--limit=1GiB"}) ==
          "1;flag.0 limit * 4GiB --limit --\n");
}

TEST_CASE("an option that was given an empty value, as of an unset variable, does not take the program for it") {
    const Folder folder;
    const Words words = {kLauncher, "run", "--driver=", "/bin/echo"};
    const Outcome outcome = run(words, plain_environment(folder.path()));
    CHECK(outcome.err == "cuslice: --driver: \"\": empty: the path of a file is needed\n");
    CHECK(outcome.out.empty());
}

TEST_CASE("the program's environment has what is needed, in its place, and nothing else") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const Words outer = with(plain, {"CUSLICE_LIMIT=4GiB", "LANG=C", "CUSLICE_FAKE_DIR=/x", "CUSLICE_LOG=info"});
    const Words options = {"--headroom", "0=64MiB", "--per-process"};
    const Outcome outcome = run(launch(options, {"/usr/bin/env"}), outer);
    CHECK(outcome.out ==
          lines_of(with(plain, {"LANG=C", "CUSLICE_FAKE_DIR=/x",
                                "CUSLICE_SETTINGS=1;flag.0 headroom 0 64MiB --headroom;flag.0 per-process * "
                                "yes --per-process;environment.0 limit "
                                "* 4GiB CUSLICE_LIMIT;environment.0 log * info CUSLICE_LOG",
                                "LD_PRELOAD=" + kLibrary})));
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
}

TEST_CASE("without any setting the library is still told that there is none, so that it reads no file") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    CHECK(run(launch({}, {"/usr/bin/env"}), plain).out ==
          lines_of(with(plain, {"CUSLICE_SETTINGS=1", "LD_PRELOAD=" + kLibrary})));
}

TEST_CASE("a program with a share of a GPU's time is a job, also where nothing limits its memory") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const auto job = [&](const Words& options, const Words& more = {}) {
        const Words program = {"/bin/sh", "-c", "echo ${CUSLICE_JOB-none}; ls " + folder.path()};
        const Outcome outcome =
            run(launch(with({"--dir=" + folder.path() + "/ledgers"}, options), program), with(plain, more));
        CHECK(outcome.err.empty());
        return without_final_newline(outcome.out);
    };
    CHECK(job({}) == "none");
    const std::string name = job({"--share=30%"});
    CHECK(name != "none");
    // Nothing is reserved for it, so there is no ledger.
    CHECK(name.find_first_of("@\n") == name.npos);
    CHECK(job({"--share=0=30%", "--gpus=all"}) != "none");
    CHECK(job({"--share=30%", "--per-process"}) == "none");
    CHECK(job({"--share=30%"}, {"CUSLICE_JOB=outer"}).starts_with("outer,"));
    CHECK(job({}, {"CUDA_DEVICE_SM_LIMIT=30"}) != "none");
    CHECK(job({}, {"CUDA_DEVICE_SM_LIMIT=100"}) == "none");
}

TEST_CASE(
    "where memory is to grow, the frameworks that take a pool at once are told so, unless somebody has told them") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const auto told = [&](const Words& options, const Words& more) {
        const Words program = {"/bin/sh", "-c",
                               "echo ${TF_FORCE_GPU_ALLOW_GROWTH-none} ${XLA_PYTHON_CLIENT_PREALLOCATE-none}"};
        const Outcome outcome = run(launch(options, program), with(plain, more), folder.path());
        CHECK(outcome.err.empty());
        return without_final_newline(outcome.out);
    };
    const std::string none = "none none", both = "true false";
    CHECK(told({}, {}) == none);
    CHECK(told({"--allocator=direct"}, {}) == none);
    CHECK(told({"--allocator=prealloc"}, {}) == none);
    CHECK(told({"--allocator=growth"}, {}) == both);
    CHECK(told({}, {"CUSLICE_ALLOCATOR=0=prealloc,1=growth"}) == both);
    // A variable that somebody has set stays as it is, whatever its value.
    CHECK(told({"--allocator=growth"}, {"TF_FORCE_GPU_ALLOW_GROWTH=false"}) == "false false");
    CHECK(told({"--allocator=growth"}, {"XLA_PYTHON_CLIENT_PREALLOCATE="}) == "true");
    CHECK(told({"--allocator=growth", "--no-framework-env"}, {}) == none);
    CHECK(told({"--allocator=growth"}, {"CUSLICE_NO_FRAMEWORK_ENV=yes"}) == none);
    CHECK(told({"--allocator=growth", "--no-framework-env=no"}, {"CUSLICE_NO_FRAMEWORK_ENV=yes"}) == both);
    // A setting that doesn't hold tells nobody anything.
    CHECK(told({"--allocator=direct"}, {"CUSLICE_ALLOCATOR=growth"}) == none);
    CHECK(told({"--allocator=direct"}, {"CUSLICE_ALLOCATOR=0=growth"}) == none);
    CHECK(told({"--allocator=0=direct"}, {"CUSLICE_ALLOCATOR=0=growth"}) == none);
    CHECK(told({"--allocator=1=direct"}, {"CUSLICE_ALLOCATOR=0=growth"}) == both);
    folder.write("cuslice.toml", "no-framework-env = true\n[gpu.0]\nallocator = \"growth\"\n");
    CHECK(told({}, {}) == none);
    CHECK(told({"--no-framework-env=no"}, {}) == both);
}

TEST_CASE("where a limit or a split holds, TensorFlow and JAX are told what their libraries need of it") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const auto told = [&](const Words& options, const Words& more) {
        const Words program = {"/bin/sh", "-c",
                               "echo ${TF_DEVICE_MIN_SYS_MEMORY_IN_MB-none} ${XLA_PYTHON_CLIENT_MEM_FRACTION-none} "
                               "${XLA_CLIENT_MEM_FRACTION-none}"};
        const Outcome outcome =
            run(launch(with({"--fake=2xstub", "--per-process"}, options), program), with(plain, more), folder.path());
        CHECK(outcome.err.empty());
        return without_final_newline(outcome.out);
    };
    const std::string none = "none none none";
    // Two GPUs of 8 GiB, whose contexts nobody knows: 520 MiB are believed, and 104 MiB of headroom follow from them.
    CHECK(told({}, {}) == none);
    CHECK(told({"--limit=4GiB"}, {}) == "192 0.8007 none");
    CHECK(told({"--fraction=0.5"}, {}) == "192 0.8007 none");
    CHECK(told({}, {"CUSLICE_LIMIT=4GiB"}) == "192 0.8007 none");
    CHECK(told({"--limit=4GiB", "--headroom=0MiB"}, {}) == "192 0.8261 none");
    CHECK(told({"--split=0=2"}, {}) == "192 0.8769 none");
    CHECK(told({"--group=lab", "--group-limit=4GiB"}, {}) == "192 0.8007 none");
    // A quarter of the 400 MiB that are left; JAX's own 75% is more than a guess would leave it.
    CHECK(told({"--limit=1GiB"}, {}) == "100 none none");
    // The smallest slice of all that the program sees, and of no other.
    CHECK(told({"--limit=0=4GiB"}, {}) == "192 0.8007 none");
    CHECK(told({"--limit=0=1GiB,1=4GiB"}, {}) == "100 none none");
    CHECK(told({"--limit=0=1GiB,1=4GiB", "--gpus=1,0"}, {}) == "100 none none");
    folder.write("cuslice.toml", "[gpu.0]\nlimit = \"1GiB\"\n");
    CHECK(told({"--limit=1=4GiB"}, {}) == "100 none none");
    CHECK(told({"--limit=1=4GiB", "--gpus=1"}, {}) == "192 0.8007 none");
    CHECK(told({"--gpus=1"}, {}) == none);
}

TEST_CASE("a variable of somebody else's stands, and no-framework-env leaves all of them alone") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const auto told = [&](const Words& options, const Words& more) {
        const Words program = {"/bin/sh", "-c",
                               "echo ${TF_DEVICE_MIN_SYS_MEMORY_IN_MB-none} ${XLA_PYTHON_CLIENT_MEM_FRACTION-none} "
                               "${XLA_CLIENT_MEM_FRACTION-none}"};
        return without_final_newline(
            run(launch(with({"--fake=2xstub", "--limit=4GiB", "--per-process"}, options), program), with(plain, more),
                folder.path())
                .out);
    };
    CHECK(told({}, {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB=7"}) == "7 0.8007 none");
    CHECK(told({}, {"XLA_PYTHON_CLIENT_MEM_FRACTION=.4"}) == "192 .4 none");
    // Both of JAX's at once are an error there.
    CHECK(told({}, {"XLA_CLIENT_MEM_FRACTION=.4"}) == "192 none .4");
    CHECK(told({}, {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB=", "XLA_CLIENT_MEM_FRACTION=.4"}) == "none .4");
    CHECK(told({"--no-framework-env"}, {}) == "none none none");
    CHECK(told({}, {"CUSLICE_NO_FRAMEWORK_ENV=yes"}) == "none none none");
    CHECK(told({"--no-framework-env=no"}, {"CUSLICE_NO_FRAMEWORK_ENV=yes"}) == "192 0.8007 none");
}

TEST_CASE("an existing LD_PRELOAD stays behind the library, and a second run inside adds nothing") {
    const Folder folder;
    const auto preload = [&](const std::string& before, bool nested) {
        const Words environment = with(plain_environment(folder.path()), {"LD_PRELOAD=" + before});
        const Words program = {"/bin/sh", "-c", "echo \"$LD_PRELOAD\""};
        return without_final_newline(run(launch({}, nested ? launch({}, program) : program), environment).out);
    };
    const std::string other = "libm.so.6";
    for (const bool nested : {false, true}) {
        CHECK(preload("", nested) == kLibrary);
        CHECK(preload(other, nested) == kLibrary + ":" + other);
        CHECK(preload(kLibrary, nested) == kLibrary);
        CHECK(preload(other + " libdl.so.2", nested) == kLibrary + ":" + other + ":libdl.so.2");
        CHECK(preload(other + ":" + kLibrary + ":libdl.so.2", nested) == kLibrary + ":" + other + ":libdl.so.2");
    }
}

TEST_CASE("a nested run: its own options win, the outer ones remain, whatever the depth") {
    const Folder folder;
    const Words environment = with(plain_environment(folder.path()), {"CUSLICE_HEADROOM=1MiB"});
    const Words program = {"/bin/sh", "-c", "echo \"$CUSLICE_SETTINGS\""};
    const Words inner = launch({"--limit=0=2GiB"}, program);
    CHECK(run(launch({"--limit=4GiB"}, inner), environment).out ==
          "1;flag.0 limit 0 2GiB --limit;flag.1 limit * 4GiB --limit;environment.1 headroom * 1MiB CUSLICE_HEADROOM;"
          "outer-job.0 ceiling.limit * 4GiB --limit%20of%20the%20outer%20job\n");
    // A setting that an inner option hides is not carried further, so that depth does not fill the environment.
    Words same = program;
    for (int depth = 0; depth < 6; ++depth)
        same = launch({"--limit=1GiB"}, same);
    const std::string around = " ceiling.limit * 1GiB --limit%20of%20the%20outer%20job";
    CHECK(run(same, plain_environment(folder.path())).out == "1;flag.0 limit * 1GiB --limit;outer-job.2" + around +
                                                                 ";outer-job.1" + around + ";outer-job.0" + around +
                                                                 "\n");
    // fraction and limit are one question: the inner one answers it.
    CHECK(run(launch({"--limit=4GiB"}, launch({"--fraction=0.5"}, program)), plain_environment(folder.path())).out ==
          "1;flag.0 fraction * 0.5 --fraction;outer-job.0 ceiling.limit * 4GiB --limit%20of%20the%20outer%20job\n");
}

TEST_CASE("the files' settings are handed on, and a nested run reads the user's and the system's file again") {
    const Folder folder;
    const std::string user = folder.write(".config/cuslice/cuslice.toml", "[memory]\nlimit = \"3GiB\"\n");
    const std::string here = folder.write("work/cuslice.toml", "[gpu.1]\nlimit = \"2GiB\"\n");
    const Words program = {"/bin/sh", "-c", "echo \"$CUSLICE_SETTINGS\""};
    const std::string expected =
        "1;current-folder.0 limit 1 2GiB " + here + ":2:1;user-file.0 limit * 3GiB " + user + ":2:1";
    CHECK(run(launch({}, program), plain_environment(folder.path()), folder.path() + "/work").out == expected + "\n");
    CHECK(run(launch({}, launch({}, program)), plain_environment(folder.path()), folder.path() + "/work").out ==
          expected + ";outer-job.0 ceiling.limit 1 2GiB " + here +
              ":2:1%20of%20the%20outer%20job;outer-job.0 ceiling.limit * 3GiB " + user +
              ":2:1%20of%20the%20outer%20job\n");
}

TEST_CASE("XDG_CONFIG_HOME names the user's folder, if it is absolute") {
    const Folder folder;
    const std::string file = folder.write("xdg/cuslice/cuslice.toml", "[memory]\nlimit = \"3GiB\"\n");
    const Words program = {"/bin/sh", "-c", "echo \"$CUSLICE_SETTINGS\""};
    const Words plain = plain_environment(folder.path() + "/home");
    CHECK(run(launch({}, program), with(plain, {"XDG_CONFIG_HOME=" + folder.path() + "/xdg"})).out ==
          "1;user-file.0 limit * 3GiB " + file + ":2:1\n");
    CHECK(run(launch({}, program), with(plain, {"XDG_CONFIG_HOME=xdg"}), folder.path()).out == "1\n");
    CHECK(run(launch({}, program), {"PATH=/usr/bin:/bin"}, folder.path()).out == "1\n");
}

TEST_CASE("a fake GPU: its variables and its folder first in LD_LIBRARY_PATH, once") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const Words program = {"/bin/sh", "-c",
                           "echo $CUSLICE_FAKE $CUSLICE_FAKE_KERNELS $LD_LIBRARY_PATH $CUSLICE_SETTINGS"};
    const Words fake = {"--fake=2xstub", "--fake-kernels=error"};
    CHECK(run(launch(fake, program), plain).out == "2xstub error " + kFakeFolder + " 1\n");
    CHECK(run(launch(fake, launch({}, program)), plain).out == "2xstub error " + kFakeFolder + " 1\n");
    CHECK(run(launch(fake, program), with(plain, {"LD_LIBRARY_PATH=/a::/b"})).out ==
          "2xstub error " + kFakeFolder + ":/a::/b 1\n");
    CHECK(run(launch(fake, launch({}, program)), with(plain, {"LD_LIBRARY_PATH=/a"})).out ==
          "2xstub error " + kFakeFolder + ":/a 1\n");
    CHECK(run(launch(fake, program), with(plain, {"LD_LIBRARY_PATH="})).out == "2xstub error " + kFakeFolder + " 1\n");
    CHECK(run(launch({}, program), with(plain, {"CUSLICE_FAKE=2xstub"})).out == "2xstub " + kFakeFolder + " 1\n");
}

TEST_CASE(
    "a fake GPU: its runtimes and libraries behind the library in LD_PRELOAD, once, and only where there is one") {
    const Folder folder;
    const Words program = {"/bin/sh", "-c", "echo $LD_PRELOAD"};
    const auto preload = [&](const Words& command, const Words& more) {
        return without_final_newline(run(command, with(plain_environment(folder.path()), more)).out);
    };
    const Words fake = {"--fake=2xstub"};
    std::string ours = kLibrary;
    for (const char* name : {"cudart.so.12", "cudart.so.11.0", "cudart.so.13", "cublas.so.13", "cublas.so.12",
                             "cublas.so.11", "cublasLt.so.13", "cublasLt.so.12", "cublasLt.so.11", "cudnn.so.9"})
        ours.append(":").append(kFakeFolder).append("/lib").append(name);
    CHECK(preload(launch(fake, program), {}) == ours);
    CHECK(preload(launch(fake, launch({}, program)), {}) == ours);
    CHECK(preload(launch(fake, program), {"LD_PRELOAD=libm.so.6"}) == ours + ":libm.so.6");
    CHECK(preload(launch(fake, launch({}, program)), {"LD_PRELOAD=libm.so.6"}) == ours + ":libm.so.6");
    const std::string other = "/other/lib/cuslice/fake/libcudart.so.12";
    CHECK(preload(launch(fake, program), {"LD_PRELOAD=" + other}) == ours);
    CHECK(preload(launch({}, program), {"LD_PRELOAD=" + other}) == kLibrary);
}

TEST_CASE("a fake GPU's runtime comes before the one that a program brings along") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    // LD_LIBRARY_PATH alone doesn't get before the program's DT_RPATH.
    CHECK(run({CUSLICE_TEST_SHARED}, with(plain, {"LD_LIBRARY_PATH=" + kFakeFolder})).out == "own13\n");
    CHECK(run(launch({}, {CUSLICE_TEST_SHARED}), plain).out == "own13\n");
    CHECK(run(launch({"--fake=2xstub"}, {CUSLICE_TEST_SHARED}), plain).out == "fake13\n");
}

TEST_CASE("what the fake GPU says of its specification is said before the program starts") {
    const Folder folder;
    const Outcome outcome = run(launch({"--fake=3xnone"}, {"/bin/echo", "started"}), plain_environment(folder.path()));
    CHECK(outcome.err == "cuslice: --fake: 3xnone: no such profile; there is stub\n");
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.out.empty());
}

TEST_CASE("inside a slice the fake GPU itself is asked, not the library that takes its place") {
    const Folder folder;
    const Words program = {"/bin/sh", "-c", "echo $CUSLICE_FAKE"};
    const Words inner = launch({"--fake=2xstub", "--limit=0=1GiB"}, program);
    const Outcome outcome = run(launch({}, inner), plain_environment(folder.path()));
    CHECK(outcome.err.empty());
    CHECK(outcome.out == "2xstub\n");
}

TEST_CASE(
    "a setting for a GPU that is not there is refused before the program starts, where there is a driver to ask") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const auto refused = [&](const std::string& option) {
        const Outcome outcome = run(launch({"--fake=2xstub", option}, {"/bin/echo", "started"}), plain);
        CHECK(outcome.exit_code == 78);
        CHECK(outcome.out.empty());
        return outcome.err;
    };
    const std::string first = "GPU-50505050-5050-5050-5050-505050505050";
    const std::string second = "GPU-51515151-5151-5151-5151-515151515151";
    const std::string both = "0 " + first + ", 1 " + second;
    CHECK(refused("--limit=2=1GiB") ==
          "cuslice: --limit: 1GiB: '2' names no GPU that is here; there are 2 GPUs: " + both + "\n");
    CHECK(refused("--limit=GPU-6=1GiB") ==
          "cuslice: --limit: 1GiB: 'GPU-6' names no GPU that is here; there are 2 GPUs: " + both + "\n");
    CHECK(refused("--limit=GPU-5=1GiB") ==
          "cuslice: --limit: 1GiB: 'GPU-5' names 2 GPUs; write more of its UUID: " + both + "\n");
    CHECK(refused("--limit=0=1GiB,GPU-50=2GiB") == "cuslice: --limit: 2GiB: 'GPU-50' and '0' are the same GPU " +
                                                       first + ", which --limit gives 1GiB; keep one of them\n");
    CHECK(run(launch({"--fake=2xstub", "--limit=1=1GiB"}, {"/bin/echo", "started"}), plain).out == "started\n");
    // No driver here: nothing is known of its GPUs.
    CHECK(run(launch({"--driver=/dev/null", "--limit=9=1GiB"}, {"/bin/echo", "started"}), plain).out == "started\n");
}

TEST_CASE("a split is looked at with the machine's GPUs, fake and real ones alike") {
    const Folder folder;
    const Words program = {"/bin/sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset} $CUSLICE_VISIBLE_DEVICES"};
    const Words plain = with(plain_environment(folder.path()), {"LD_LIBRARY_PATH=" + kFakeFolder});
    const std::string first = "GPU-50505050-5050-5050-5050-505050505050",
                      second = "GPU-51515151-5151-5151-5151-515151515151";
    for (const Words& machine : {Words{"--fake=2xstub"}, Words{}}) {
        const auto outcome = [&](const Words& options) { return run(launch(with(machine, options), program), plain); };
        CHECK(outcome({"--split=1=2"}).out == "unset " + first + "," + second + "\n");
        CHECK(outcome({"--split=4", "--gpus=1"}).out == "unset " + second + "\n");
        const Outcome refused = outcome({"--split=1=8GiB+rest"});
        CHECK(refused.err ==
              "cuslice: --split: 1=8GiB+rest: the rest of the 8192.0 MiB of GPU 1 is 0 bytes: a partition has at least "
              "64MiB\n");
        CHECK(refused.exit_code == 78);
        CHECK(refused.out.empty());
    }
}

TEST_CASE("the system's file is not trusted if others than root can write it, and read otherwise") {
    const Folder folder;
    const SystemFile file("[ceiling]\nlimit = \"1GiB\"\n");
    const Words program = {"/bin/sh", "-c", "echo \"$CUSLICE_SETTINGS\""};
    CHECK(run(launch({}, program), plain_environment(folder.path())).out ==
          "1;system-file.0 ceiling.limit * 1GiB ceiling%20" + kSystemFile + ":2:1\n");
    REQUIRE(::chmod(kSystemFile.c_str(), 0646) == 0);
    const Outcome outcome = run(launch({}, program), plain_environment(folder.path()));
    CHECK(outcome.err == "cuslice: " + kSystemFile +
                             ": writable by others than root, so nobody can trust its ceilings: chmod go-w it\n");
    CHECK(outcome.exit_code == 78);
}

}  // namespace cuslice::tests
