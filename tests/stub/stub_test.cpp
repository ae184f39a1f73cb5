// SPDX-License-Identifier: Apache-2.0
// The stub of /etc/ld.so.preload: programs that come to CUDA get the library, however they come to it; the others get
// nothing; and whatever is broken, nobody but a CUDA program notices.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"
#include "tests/stub/system.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

constexpr char kLaptop[] = "1xlaptop-2g";
const std::string kLinked = CUSLICE_TEST_LINKED;

// On a fake GPU of 2 GiB, with a limit of 1 GiB.
Words limited(const Folder& books, const Words& more = {}) {
    return raw(kLaptop, books.path(), joined({"CUSLICE_LIMIT=1024MiB"}, more));
}

bool says(const Outcome& outcome, const std::string& line) {
    const Words lines = split_lines(outcome.out);
    return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// A library of the name that is no use: how it is broken, and the words for it.
struct Broken {
    const char* how;
    std::string why;
};
const Broken kBroken[] = {{"missing", "is not there"},
                          {"cut short", "is not whole"},
                          {"a text", "is no library for this machine"},
                          {"older", "is older than libcuslice-preload.so"}};

void break_library(const System& system, const std::string& how) {
    system.put_library(how == "older" ? CUSLICE_TEST_OLDER : kPreloaded);
    if (how == "missing")
        fs::remove(system.library());
    if (how == "cut short")
        fs::resize_file(system.library(), fs::file_size(system.library()) / 2);
    if (how == "a text")
        fs::resize_file(system.library(), 0), system.write("system/library/libcuslice.so", "text");
}

}  // namespace

TEST_CASE("a program that opens the driver is in its slice, whatever name it opens it by") {
    const std::string route =
        GENERATE(as<std::string>{}, "dlopen=libcuda.so.1", "dlopen=libcuda.so", "dlopen=" + kFakeDriver, "v2");
    CAPTURE(route);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    Guest guest(system.command(Guest::route(route)), limited(books));
    retain_device(guest);
    CHECK(guest.number("total 0") == kGiB);
    CHECK(guest.code("alloc a " + bytes(kGiB)) == kOutOfMemory);
    CHECK(guest.code("alloc a " + bytes(512 * kMiB)) == kSuccess);
    CHECK(books_of(books.path(), guest.pid()).used > 512 * kMiB);
    CHECK(guest.code("nvml") == kSuccess);
    CHECK(guest.number("nvmlmemory 0", 1) == kGiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("a program that is linked to the driver is in its slice before its first constructor") {
    const std::string kind = GENERATE("lazy", "now", "relro");
    const Words more = GENERATE(Words{}, Words{"LD_BIND_NOW=1"});
    CAPTURE(kind, more);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const Outcome outcome = run(system.command({kLinked + kind}), limited(books, more));
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    CHECK(says(outcome, "constructor 0 1024"));
    CHECK(says(outcome, "main 0 1024"));
}

TEST_CASE("a linked program sees nothing of having been started once more") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const std::string empty = CUSLICE_TEST_OLDER;  // any library that does nothing
    const Words preloaded = GENERATE_COPY(Words{}, Words{"LD_PRELOAD=" + empty}, Words{"LD_PRELOAD="});
    const std::string link = system.at("a-name-of-mine");
    fs::create_symlink(kLinked + "lazy", link);
    // Variables that cuInit sets for frameworks don't depend on how the program was started.
    const Words last = {"CUSLICE_NO_FRAMEWORK_ENV=1", "LAST=1"};
    const auto seen = [&](const Words& words) { return run(words, limited(books, joined(preloaded, last))).out; };
    // Through the machine's own shell, as that is what the namespace is made with.
    const std::string with = seen(system.command({link, "one", "two words", ""}));
    const std::string without = seen({"/bin/sh", "-c", "exec \"$@\"", "sh", link, "one", "two words", ""});
    CHECK(with.find("word two words\nword \n") != std::string::npos);
    CHECK(with.find("name a-name-of-mine\n") != std::string::npos);
    CHECK(with.substr(with.find("name ")) == without.substr(without.find("name ")));
}

TEST_CASE("a linked program whose file can't be told is ended") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    // Somebody's own folder in the place of /proc, whose link leads to another program.
    const std::string way = GENERATE("", "mkdir /proc/self && ln -s /bin/echo /proc/self/exe && ");
    const std::string script = "mount -t tmpfs none /proc && " + std::string(way) + "exec " + kLinked + "lazy";
    const Outcome outcome = run(system.command({"/bin/sh", "-c", script}), limited(books));
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 127);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("cannot be had, as the program cannot be started once more") != std::string::npos);
}

TEST_CASE("a script whose interpreter is linked to the driver keeps its name and its words") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    system.write("script-of-mine", "#!" + kLinked + "lazy option\n");
    fs::permissions(system.at("script-of-mine"), fs::perms(0755));
    const Outcome outcome = run(system.command({system.at("script-of-mine"), "one"}), limited(books));
    CAPTURE(outcome.out, outcome.err);
    CHECK(says(outcome, "main 0 1024"));
    CHECK(says(outcome, "name script-of-mine"));
    const std::string words = "word option\nword " + system.at("script-of-mine") + "\nword one\n";
    CHECK(outcome.out.find(words) != std::string::npos);
}

TEST_CASE("a linked program that the loader was asked to run keeps its words") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    std::string loader;
    for (const char* path : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"})
        if (fs::exists(path))
            loader = path;
    const Outcome outcome = run(system.command({loader, kLinked + "lazy", "one", "two"}), limited(books));
    CAPTURE(outcome.out, outcome.err);
    CHECK(says(outcome, "constructor 0 1024"));
    CHECK(outcome.out.find("word " + kLinked + "lazy\nword one\nword two\n") != std::string::npos);
}

TEST_CASE("a program that cuslice run started stays in the slice that it was given") {
    const std::string route = GENERATE(as<std::string>{}, "linked", "dlopen=libcuda.so.1", "dlopen=" + kFakeDriver);
    CAPTURE(route);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const Words launch{CUSLICE_TEST_LAUNCH, "run", "--fake", kLaptop, "--limit", "768MiB", "--"};
    Guest guest(system.command(joined(launch, Guest::route(route))),
                plain({"CUSLICE_FAKE_DIR=" + books.path(), "LD_LIBRARY_PATH=" + kFakeFolder}));
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.number("total 0") == 768 * kMiB);
    CHECK(guest.complaints().empty());
    CHECK(guest.finish() == 0);
}

TEST_CASE("the system's file holds for a program that has shed its environment") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    system.write("etc/cuslice/cuslice.toml", "[ceiling]\nlimit = \"640MiB\"\n");
    const std::string own =
        "CUSLICE_FAKE_DIR=" + books.path() + " CUSLICE_FAKE=" + kLaptop + " LD_LIBRARY_PATH=" + kFakeFolder + " ";
    const std::string program = kLinked + "lazy";
    const std::string way = GENERATE_COPY(
        as<std::string>{}, "env -i " + own + program, "env -u LD_PRELOAD " + own + program, "exec env " + own + program,
        "unset LD_PRELOAD; " + own + program, "setsid -w env -i " + own + program,
        "env -i /bin/sh -c '" + own + program + "'", "(env -i " + own + program + " &) | cat",
        "nohup env -i " + own + program, "env -i CUSLICE_LIMIT=2GiB " + own + program,
        "timeout 60 env -i " + own + program, "echo '" + own + program + "' | env -i /bin/sh",
        "env -i unshare --user --map-root-user " + std::string("env ") + own + program,
        "xargs -a /dev/null env -i " + own + program);
    if (way.find("unshare --user") != way.npos && !can_unshare(CLONE_NEWUSER))
        return;
    CAPTURE(way);
    const Outcome outcome = run(system.command({"/bin/sh", "-c", way}), plain());
    CAPTURE(outcome.out, outcome.err);
    CHECK(says(outcome, "main 0 640"));
}

TEST_CASE("where the library can't be had, a program that opens the driver is told so, and goes on") {
    const Broken broken = GENERATE(from_range(std::begin(kBroken), std::end(kBroken)));
    CAPTURE(broken.how);
    const System system;
    const Folder books;
    if (!system.possible() || kPython.empty())
        return;
    break_library(system, broken.how);
    const std::string script =
        "import ctypes\n"
        "for name in ('libcuda.so.1', 'libcuda.so.1'):\n"
        "  try: ctypes.CDLL(name); print('opened')\n"
        "  except OSError as error: print(error)\n"
        "ctypes.CDLL('libnvidia-ml.so.1'); print('NVML is there')\n";
    const Outcome outcome = run(system.command({kPython, "-c", script}), limited(books));
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    const std::string error =
        "/proc/cuslice refuses CUDA to this program: libcuda.so.1: cannot open shared object "
        "file: No such file or directory\n";
    CHECK(outcome.out == error + error + "NVML is there\n");
    CHECK(outcome.err == "cuslice: " + system.library() + " " + broken.why + ", so this program gets no CUDA\n");
}

TEST_CASE("where the library can't be had, a linked program finds no GPU from its first constructor on") {
    const Broken broken = GENERATE(from_range(std::begin(kBroken), std::end(kBroken)));
    CAPTURE(broken.how);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    break_library(system, broken.how);
    const Outcome outcome = run(system.command({kLinked + "lazy", "word"}), limited(books));
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(says(outcome, "constructor 100 0"));
    CHECK(says(outcome, "main 100 0"));
    CHECK(says(outcome, "word word"));
    CHECK(outcome.out.find("CUSLICE_STUB") == std::string::npos);
    CHECK(outcome.out.find("LD_PRELOAD") == std::string::npos);
    CHECK(outcome.err.find(system.library() + " " + broken.why + ", so this program gets no CUDA") !=
          std::string::npos);
}

TEST_CASE("a program with more rights than its user that opens the driver heeds the system's file alone") {
    const System system;
    const Folder books;
    if (!system.possible() || !can_be_other_users() || !can_let_others_in())
        return;
    system.write("etc/cuslice/cuslice.toml", "[ceiling]\nlimit = \"640MiB\"\n");
    const std::string program = system.at("set-user-id");
    fs::copy_file(kGuests + "/guest", program);
    const std::string script = "chmod 4755 " + program + " && echo 'init\ntotal 0' | setpriv --reuid 60001 " +
                               "--regid 60001 --clear-groups " + program + " dlopen=" + kFakeDriver;
    const Outcome outcome = run(system.command({"/bin/sh", "-c", script}), limited(books, {"CUSLICE_LIMIT=1MiB"}));
    CAPTURE(outcome.out, outcome.err);
    CHECK(says(outcome, "0 " + std::to_string(640 * kMiB)));
}

TEST_CASE("the launcher sees the GPUs as they are where the list names the library itself") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    fs::create_directory(system.at("driver"));
    fs::copy_file(CUSLICE_TEST_NAMED_DRIVER, system.at("driver/libcuda.so.1"));
    system.write("etc/cuslice/cuslice.toml", "[ceiling]\nlimit = \"640MiB\"\n");
    const Words environment = plain({"CUSLICE_FAKE_DIR=" + books.path(), "LD_LIBRARY_PATH=" + system.at("driver")});
    const auto devices = [&](const Words& options) {
        const Outcome outcome = run(system.command(joined({kLaunch, "devices", "--json"}, options)), environment);
        CAPTURE(outcome.err);
        CHECK(outcome.exit_code == 0);
        return outcome.out;
    };
    const Words fake{"--fake", kLaptop};
    system.write("etc/ld.so.preload", "");
    const std::string with_fake = devices(fake), by_name = devices({});
    system.write("etc/ld.so.preload", kPreloaded + "\n");
    CHECK(devices(fake) == with_fake);
    CHECK(devices({}) == by_name);

    Guest guest(system.command(joined({kLaunch, "run", "--fake", kLaptop, "--limit", "512MiB", "--"},
                                      Guest::route("dlopen=libcuda.so.1"))),
                environment);
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.number("total 0") == 512 * kMiB);
    CHECK(guest.complaints().empty());
    CHECK(guest.finish() == 0);
}

TEST_CASE("whatever the stub or the library is, programs without CUDA run as ever") {
    const System system;
    if (!system.possible())
        return;
    const std::string what =
        GENERATE("whole", "library", "stub cut short", "stub missing", "stub a text", "empty list");
    CAPTURE(what);
    if (what == "library")
        break_library(system, "missing");
    if (what == "stub cut short")
        fs::resize_file(system.stub(), 100);
    if (what == "stub missing")
        fs::remove(system.stub());
    if (what == "stub a text")
        fs::resize_file(system.stub(), 0), system.write("system/libcuslice-preload.so", "text");
    if (what == "empty list")
        system.write("etc/ld.so.preload", "\n");
    const Outcome outcome =
        run(system.command({"/bin/sh", "-c", "/bin/true && /bin/echo on && ls / | head -1"}), plain());
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.starts_with("on\n"));
    const bool loads = what == "whole" || what == "library" || what == "empty list";
    CHECK(outcome.err.empty() == loads);  // else the loader says so, and goes on
}

TEST_CASE("a program without CUDA makes no system call for the stub but the loader's own") {
    const System system;
    if (!system.possible())
        return;
    const std::string strace = "/usr/bin/strace";
    if (!fs::exists(strace))
        return skip("there is no strace");
    const auto calls = [&](const Words& program) {
        const Outcome outcome = run(system.command(joined({strace, "-e", "signal=none"}, program)), plain());
        Words kept;
        bool before = true;  // what the loader does with the list and the file in it
        for (const std::string& line : split_lines(outcome.err)) {
            if (line.find("ld.so.cache") != std::string::npos)
                before = false;
            if (!before)
                kept.push_back(line.substr(0, line.find('(')));
        }
        return kept;
    };
    const Words with = calls({"/bin/true"});
    system.write("etc/ld.so.preload", "");
    const Words without = calls({"/bin/true"});
    CHECK(without.size() > 10);
    CHECK(with == without);
}

}  // namespace cuslice::tests
