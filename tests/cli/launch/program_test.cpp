// SPDX-License-Identifier: Apache-2.0
// cuslice run, as a child process: which program it starts, and from where.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "elf/machine.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {

TEST_CASE("a program that cannot be started gives a shell's exit code and says why") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const std::string data = folder.write("data", "x");
    const std::string bad = folder.write("bad", "#!/nowhere/interpreter\n", 0755);
    const auto check = [&](const std::string& program, int code, const std::string& message) {
        const Outcome outcome = run(launch({}, {program}), plain, folder.path());
        CHECK(outcome.exit_code == code);
        CHECK(outcome.err == "cuslice: " + message + "\n");
    };
    check("cuslice-no-such-program", 127, "cuslice-no-such-program: command not found");
    check("", 127, "\"\": command not found");
    check("./nothing", 127, "./nothing: No such file or directory");
    check("./data/nothing", 127, "./data/nothing: Not a directory");
    check("./data", 126, "./data: Permission denied");
    check("/tmp", 126, "/tmp: Is a directory");
    check(bad, 126, bad + ": cannot be started: No such file or directory");
}

TEST_CASE("the program is found in PATH as execvp finds it, and a script without #! is the shell's") {
    const Folder folder;
    folder.write("a/tool", "exit 3\n", 0644);
    folder.write("b/tool", "echo $0 $1 $$\n", 0755);
    const Words program = launch({}, {"tool", "x"});
    const std::string paths = folder.path() + "/a:" + folder.path() + "/b";
    const Outcome outcome = run(program, {"PATH=" + paths + ":/usr/bin:/bin", "HOME=/"});
    CHECK(outcome.out == folder.path() + "/b/tool x " + std::to_string(outcome.pid) + "\n");
    CHECK(run(launch({}, {"tool"}), {"PATH=" + folder.path() + "/a", "HOME=/"}).exit_code == 126);
    CHECK(run(launch({}, {"true"}), {"HOME=/"}).exit_code == 0);
}

TEST_CASE("children, shells and Python keep the slice") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const std::string expected = "1;flag.0 limit * 1GiB --limit\n" + kLibrary + "\n";
    const std::string show = "echo \"$CUSLICE_SETTINGS\"; echo $LD_PRELOAD";
    CHECK(run(launch({"--limit=1GiB"}, {"/bin/bash", "-c", "sh -c '" + show + "'"}), plain).out == expected);
    const std::string python =
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import os; print(os.environ[\"CUSLICE_SETTINGS\"])'], check=True)\n"
        "print(os.environ['LD_PRELOAD'])\n";
    CHECK(run(launch({"--limit=1GiB"}, {"python3", "-c", python}), plain).out == expected);
}

TEST_CASE("an installation whose path LD_PRELOAD would take apart is refused") {
    for (const char* name : {"with space", "with:colon", "with;semicolon", "with$dollar"}) {
        const Folder folder;
        const std::string moved = folder.path() + "/" + name;
        std::filesystem::copy(kTree, moved, std::filesystem::copy_options::recursive);
        const Outcome outcome =
            run({moved + "/bin/cuslice", "run", "--", "/bin/echo", "started"}, plain_environment(folder.path()));
        CHECK(outcome.err ==
              "cuslice: " + moved +
                  "/lib/cuslice/libcuslice.so: LD_PRELOAD ignores a path with a space, colon, semicolon or "
                  "dollar sign: move the installation\n");
        CHECK(outcome.exit_code == 78);
        CHECK(outcome.out.empty());
    }
}

TEST_CASE("a tree that was moved finds its own library, also through a symbolic link; one without it says so") {
    const Folder folder;
    const std::string moved = folder.path() + "/moved";
    std::filesystem::copy(kTree, moved, std::filesystem::copy_options::recursive);
    std::filesystem::create_symlink(moved + "/bin/cuslice", folder.path() + "/cuslice");
    const Words plain = plain_environment(folder.path());
    const Words show = {folder.path() + "/cuslice", "run", "--", "/bin/sh", "-c", "echo $LD_PRELOAD"};
    CHECK(run(show, plain).out == moved + "/lib/cuslice/libcuslice.so\n");
    std::filesystem::remove(moved + "/lib/cuslice/libcuslice.so");
    const Outcome outcome = run(show, plain);
    CHECK(outcome.err ==
          "cuslice: " + moved + "/lib/cuslice/libcuslice.so: no such file: this installation is not whole\n");
    CHECK(outcome.exit_code == 78);
}

TEST_CASE("a program that the library cannot reach is started, with a line that says so") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const Outcome fixed = run(launch({}, {CUSLICE_TEST_STATIC}), plain);
    CHECK(fixed.exit_code == 7);
    CHECK(fixed.err ==
          std::string("cuslice: ") + CUSLICE_TEST_STATIC +
              ": statically linked: there is no loader that could preload the library, so this program gets "
              "no slice\n");
    const std::string script = folder.write("script", std::string("#! ") + CUSLICE_TEST_STATIC + " -x\n", 0755);
    CHECK(run(launch({}, {script}), plain).err == fixed.err);
    const std::string foreign = folder.write("foreign",
                                             std::string("\x7f"
                                                         "ELF\x01\x01\x01",
                                                         7) +
                                                 std::string(64, '\0'),
                                             0755);
    CHECK(run(launch({}, {foreign}), plain)
              .err.starts_with("cuslice: " + foreign +
                               ": not an " ELF_MACHINE_NAME
                               " program: the loader ignores LD_PRELOAD there, so this program gets no slice\n"));
}

TEST_CASE("a program of another C library is started without the library, with a line that says so") {
    const Folder folder;
    Words environment = plain_environment(folder.path());
    const Outcome alone = run(launch({"--limit=1GiB"}, {CUSLICE_TEST_OTHER_LIBC}), environment);
    CHECK(alone.exit_code == 7);
    CHECK(alone.out.empty());
    CHECK(alone.err == std::string("cuslice: ") + CUSLICE_TEST_OTHER_LIBC + ": its loader " +
                           CUSLICE_TEST_OTHER_LOADER +
                           " is not the GNU C library's, which libcuslice.so needs, so this program gets no slice\n");
    // Libraries that somebody else preloads stay.
    environment.push_back("LD_PRELOAD=" + kLibrary + ":/nowhere/other.so");
    CHECK(run({CUSLICE_TEST_OTHER_LIBC}, environment).out == environment.back());
    Words preloaded = plain_environment(folder.path());
    preloaded.push_back("LD_PRELOAD=libm.so.6");
    CHECK(run(launch({"--limit=1GiB"}, {CUSLICE_TEST_OTHER_LIBC}), preloaded).out == "LD_PRELOAD=libm.so.6");
}

TEST_CASE("the launcher asks the driver that the program's own search path leads to") {
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const std::string program = GENERATE(CUSLICE_TEST_RPATH, CUSLICE_TEST_RUNPATH);
    // The stub's two GPUs are known, so it was asked.
    const auto asked = [](const Outcome& outcome) {
        return outcome.exit_code == 78 &&
               outcome.err.find("'7' names no GPU that is here; there are 2 GPUs") != std::string::npos;
    };
    CHECK(asked(run(launch({"--limit=7=1GiB"}, {program}), plain)));
    const std::string script = folder.write("script", "#!" + program + "\n", 0755);
    CHECK(asked(run(launch({"--limit=7=1GiB"}, {script}), plain)));
    // LD_LIBRARY_PATH comes after an RPATH and before a RUNPATH. What it leads to here is no driver that could be
    // asked.
    folder.write("other/libcuda.so.1", "x");
    Words other = plain;
    other.push_back("LD_LIBRARY_PATH=" + folder.path() + "/other");
    const Outcome between = run(launch({"--limit=7=1GiB"}, {program}), other);
    CHECK(asked(between) == (program == CUSLICE_TEST_RPATH));
    CHECK((between.exit_code == 7) == (program == CUSLICE_TEST_RUNPATH));
}

TEST_CASE("the loader as the program, and a loader by another name, are no reason for a line") {
#if defined(__aarch64__)
    const std::string loader = "/lib/ld-linux-aarch64.so.1";
#else
    const std::string loader = "/lib64/ld-linux-x86-64.so.2";
#endif
    const Folder folder;
    const Words plain = plain_environment(folder.path());
    const Outcome started = run(launch({}, {loader, "/bin/sh", "-c", "echo $LD_PRELOAD"}), plain);
    CHECK(started.err.empty());
    CHECK(started.out == kLibrary + "\n");
    // As bundles have it: the same loader in a folder and by a name of their own.
    const std::string renamed = folder.path() + "/my-loader.so";
    std::filesystem::copy_file(std::filesystem::canonical(loader), renamed);
    CHECK(run(launch({}, {renamed, "/bin/true"}), plain).err.empty());
}

TEST_CASE("a set-user-ID program is started, with a line that says that it gets no slice") {
    if (!can_be_other_users())
        return;
    const Folder folder;
    const std::string program = folder.path() + "/true";
    std::filesystem::copy_file("/bin/true", program);
    REQUIRE(::chown(program.c_str(), 65534, 0) == 0);
    REQUIRE(::chmod(program.c_str(), 04755) == 0);
    const Outcome outcome = run(launch({}, {program}), plain_environment(folder.path()));
    CHECK(outcome.err == "cuslice: " + program +
                             ": set-user-ID: the loader ignores LD_PRELOAD there, so this program gets no slice\n");
    CHECK(outcome.exit_code == 0);
}

}  // namespace cuslice::tests
