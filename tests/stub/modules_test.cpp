// SPDX-License-Identifier: Apache-2.0
// Libraries that a program opens while it runs, and that need the driver by name: by themselves, or through others that
// lie wherever the loader looks.
#include <unistd.h>

#include <filesystem>

#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"
#include "tests/stub/system.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

const std::string kModules = CUSLICE_TEST_MODULES, kOpen = CUSLICE_TEST_OPEN;

std::string module(const std::string& kind) { return kModules + "/libstub_module_" + kind + ".so"; }

// On a fake GPU of 2 GiB, with a limit of 1 GiB; `path` stands in LD_LIBRARY_PATH before the driver's folder.
Words limited(const Folder& books, const std::string& path = "") {
    return plain({"CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(), "CUSLICE_LIMIT=1024MiB",
                  "LD_LIBRARY_PATH=" + (path.empty() ? path : path + ":") + kFakeFolder});
}

constexpr char kLimited[] = "1024 MiB\nlimited\n";

}  // namespace

TEST_CASE("a library that needs the driver is in the slice, however it needs it") {
    struct Way {
        std::string program, name, path;
    };
    const Way way = GENERATE(
        Way{"plain", module("direct"), ""}, Way{"plain", module("runpath"), ""}, Way{"plain", module("rpath"), ""},
        Way{"plain", module("slash"), ""}, Way{"plain", module("bare"), kModules + "/below"},
        // RPATH is before LD_LIBRARY_PATH.
        Way{"plain", module("rpath"), kModules + "/decoys"},
        // Without a slash, the caller's folders count.
        Way{"plain", "libstub_module_direct.so", kModules}, Way{"runpath", "libstub_module_direct.so", ""},
        Way{"rpath", "libstub_module_direct.so", ""}, Way{"plain", "by:libstub_module_direct.so", ""},
        Way{"plain", "$ORIGIN/modules/libstub_module_direct.so", ""},
        Way{"plain", "by:$ORIGIN/libstub_module_direct.so", ""});
    CAPTURE(way.program, way.name, way.path);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const Outcome outcome = run(system.command({kOpen + way.program, way.name}), limited(books, way.path));
    CAPTURE(outcome.err);
    CHECK(outcome.out == kLimited);
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
}

TEST_CASE("a library that needs the driver is in the slice, wherever the loader finds what it needs") {
    const std::string where = GENERATE("in the cache", "in a default folder");
    CAPTURE(where);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    std::string script = "echo " + kModules + "/below > /etc/ld.so.conf && /sbin/ldconfig";
    std::string kind = "bare";
    if (where == "in a default folder") {
        // A library of the C library's that nobody uses lends its place.
        std::string place;
        for (const char* folder : {"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64"})
            if (fs::exists(folder + std::string("/libBrokenLocale.so.1")))
                place = folder;
        if (place.empty())
            return skip("there is no libBrokenLocale.so.1");
        script = "mount --bind " + kModules + "/below/libstub_below.so " + place +
                 "/libBrokenLocale.so.1 && rm /etc/ld.so.cache";
        kind = "default";
    }
    const Outcome outcome =
        run(system.command({"/bin/sh", "-c", script + " && exec \"$@\"", "sh", kOpen + "plain", module(kind)}),
            limited(books));
    CAPTURE(outcome.err);
    CHECK(outcome.out == kLimited);
}

TEST_CASE("a library that needs no driver brings nothing in") {
    struct Way {
        std::string name, path;
    };
    // LD_LIBRARY_PATH is before RUNPATH, and the loader finds a library without the driver there.
    const Way way = GENERATE(Way{module("plain"), ""}, Way{module("runpath"), kModules + "/decoys"},
                             Way{"libc.so.6", ""}, Way{"/not/there.so", ""}, Way{"libnot-there.so", ""});
    CAPTURE(way.name, way.path);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const Words command{kOpen + "plain", way.name};
    const Outcome outcome = run(system.command(command), limited(books, way.path));
    system.write("etc/ld.so.preload", "");
    const Outcome without = run(system.command(command), limited(books, way.path));
    CHECK(without.out.ends_with("without\n"));
    CHECK(outcome.out == without.out);
    CHECK(outcome.err == without.err);
}

TEST_CASE("a library that is only asked for brings nothing in") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const Outcome outcome = run(system.command({kOpen + "plain", "--noload", module("direct")}), limited(books));
    CHECK(outcome.out == "not loaded\nwithout\n");
}

TEST_CASE("to open what is loaded already makes no system call for the stub") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const std::string strace = "/usr/bin/strace";
    if (!fs::exists(strace))
        return skip("there is no strace");
    const auto calls = [&] {
        const Words command{strace, "-e", "signal=none", kOpen + "plain", "libc.so.6"};
        Words kept;
        bool before = true;  // what the loader does with the list and the file in it
        for (const std::string& line : split_lines(run(system.command(command), limited(books)).err)) {
            if (line.find("ld.so.cache") != std::string::npos)
                before = false;
            // How often the program reads its map follows from the length of the paths in it.
            if (line.find("/proc/self/maps") != std::string::npos)
                break;
            if (!before)
                kept.push_back(line.substr(0, line.find('(')));
        }
        return kept;
    };
    const Words with = calls();
    system.write("etc/ld.so.preload", "");
    CHECK(with.size() > 10);
    CHECK(with == calls());
}

TEST_CASE("a library that needs NVML alone is under the limits too") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    CHECK(run(system.command({kOpen + "plain", module("nvml")}), limited(books)).out == "0 MiB\nlimited\n");
}

TEST_CASE("where the library can't be had, what needs the driver is not opened, and all else is") {
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    system.put_library(kPreloaded);
    fs::remove(system.library());
    const std::string error =
        "/proc/cuslice refuses CUDA to this program, and the library that it opens needs libcuda.so.1: cannot open "
        "shared object file: No such file or directory\n";
    const Outcome outcome =
        run(system.command({kOpen + "plain", module("direct"), module("rpath"), module("plain"), module("nvml")}),
            limited(books));
    CHECK(outcome.out == error + error + "0 MiB\n0 MiB\nwithout\n");
    CHECK(outcome.err == "cuslice: " + system.library() + " is not there, so this program gets no CUDA\n");
}

TEST_CASE("whatever file a program opens, the loader says what it says without the stub") {
    const int size = GENERATE(0, 1, 16, 63, 64, 100, 500, 1000, 4096, 8192);
    CAPTURE(size);
    const System system;
    const Folder books;
    if (!system.possible())
        return;
    const std::string file = system.at("short.so");
    fs::copy_file(module("plain"), file);
    fs::resize_file(file, static_cast<uintmax_t>(size));
    const Outcome outcome = run(system.command({kOpen + "plain", file}), limited(books));
    system.write("etc/ld.so.preload", "");
    const Outcome without = run(system.command({kOpen + "plain", file}), limited(books));
    CHECK(outcome.out == without.out);
    CHECK(outcome.err == without.err);
    CHECK(outcome.exit_code == without.exit_code);
}

}  // namespace cuslice::tests
