// SPDX-License-Identifier: Apache-2.0
// Recordings: what is in the file is what the program did, and it is never in the program's way.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/recorded.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

constexpr char kLaptop[] = "1xlaptop-2g";
const Words kNothing, kDirect{"CUSLICE_LIMIT=1GiB"}, kGrowth{"CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=growth"},
    kDeferred{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"},
    kPrealloc{"CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=prealloc"};

/// A program that is recorded under LD_PRELOAD alone.
struct Session {
    explicit Session(const Words& settings, const std::string& name = "out.csv")
        : file(folder.path() + "/" + name),
          guest(Guest::route("linked"), sliced(kLaptop, books.path(), joined(settings, {"CUSLICE_RECORD=" + file}))) {}
    void start() { use_device(guest); }
    bool exists(const std::string& name) const { return std::filesystem::exists(folder.path() + "/" + name); }

    Folder folder, books;
    std::string file;
    Guest guest;
};

}  // namespace

TEST_CASE("rows are what the program did, in every mode and without a limit") {
    const Words& settings = GENERATE(kNothing, kDirect, kGrowth, kDeferred, kPrealloc);
    const std::string name = GENERATE("out.csv", "out.trace");
    INFO((settings.empty() ? "" : settings.back()));
    Session session(settings, name);
    Guest& guest = session.guest;
    session.start();
    CHECK_FALSE(session.exists(name));  // nothing was allocated yet
    std::vector<uint64_t> addresses;
    addresses.push_back(guest.number("alloc a 1000001"));
    addresses.push_back(guest.number("alloc b 70"));
    CHECK(guest.code("free a") == kSuccess);
    addresses.push_back(guest.number("alloc c 3000 managed"));
    const uint64_t pitch = guest.number("pitch d 100 10");
    CHECK(guest.code("alloc e 999999999999") == kOutOfMemory);
    CHECK(guest.code("alloc e 0") == kInvalidValue);
    CHECK(guest.code("free b") == kSuccess);
    CHECK(guest.code("free b") == kInvalidValue);  // neither this nor what follows is a free
    CHECK(guest.code("freeat 12345") == kInvalidValue);
    CHECK(guest.code("freeat 0") == kSuccess);
    const uint64_t stream = guest.number("stream s");
    addresses.push_back(guest.number("alloc f 5000 on=s"));
    CHECK(guest.code("freeasync f s") == kSuccess);
    addresses.push_back(guest.number("alloc g 6000 ptsz"));
    CHECK(guest.code("free g") == kSuccess);
    addresses.push_back(guest.number("alloc h 7000"));
    const bool caches = settings != kNothing && settings != kDirect;
    CHECK(guest.code("freeasync h s") ==
          (caches ? kSuccess : kInvalidValue));  // the driver takes memory of pools alone
    CHECK(guest.code("free d") == kSuccess);
    CHECK(guest.code("pool p 0") == kSuccess);
    CHECK(guest.code("alloc i 8000 pool=p") == kSuccess);
    CHECK(guest.code("freeasync i") == kSuccess);
    CHECK(guest.code("alloc j 4000 old") == kSuccess);
    CHECK(guest.code("freeold j") == kSuccess);
    const Recorded recorded(session.file);
    const std::string pitched = std::to_string(pitch * 10);
    CHECK(recorded.text() ==
          "allocate 1000001; allocate 70; free 1000001; allocate 3000; allocate " + pitched +
              "; allocate failure 999999999999; free 70; allocate 5000; free 5000; allocate 6000; free 6000; "
              "allocate 7000; free 7000; " +
              (caches ? "" : "allocate 7000; ") + "free " + pitched +
              "; allocate 8000; free 8000; allocate 4000; free 4000; ");
    CHECK(recorded.rows[0].address == addresses[0]);
    CHECK(recorded.rows[1].address == addresses[1]);
    CHECK(recorded.rows[3].address == addresses[2]);
    CHECK(recorded.rows[7].address == addresses[3]);
    CHECK(recorded.rows[7].stream == stream);
    CHECK(recorded.rows[8].stream == stream);
    CHECK(recorded.rows[9].stream == 2);  // CU_STREAM_PER_THREAD
    CHECK(recorded.rows[10].stream == 0);
    CHECK(recorded.rows[12].stream == stream);
    CHECK(recorded.threads() == std::set<std::string>{std::to_string(guest.pid())});
    CHECK(recorded.live.size() == (caches ? 1 : 2));
    CHECK(recorded.live.count(addresses[2]) == 1);
    CHECK(guest.finish() == 0);
    // A refusal is told by two lines at most, and by none where there is no limit.
    CHECK(guest.complaints().size() == (settings == kNothing ? 0 : settings == kDirect ? 1 : 2));
}

TEST_CASE("rows name the GPU that the memory is on, its limit, and what counts against it") {
    const Machine machine("3xlaptop-2g");
    const Folder folder;
    const bool limited = GENERATE(true, false);
    const std::string file = folder.path() + GENERATE("/a.csv", "/a.trace");
    Words options{"--record", file, "--gpus", "2,0"};
    if (limited)
        options = joined(options, {"--limit", "0=512MiB,2=1GiB"});
    const auto guest = machine.start(options);
    retain_device(*guest);
    REQUIRE(guest->code("retain 1") == kSuccess);
    REQUIRE(guest->code("current 1") == kSuccess);
    CHECK(guest->code("alloc a 1048576") == kSuccess);
    CHECK(guest->code("alloc b 2097152 async") == kSuccess);
    CHECK(guest->code("alloc e 99999999999 async") == kOutOfMemory);
    REQUIRE(guest->code("current 0") == kSuccess);
    CHECK(guest->code("alloc c 3145728") == kSuccess);
    CHECK(guest->code("pool p 1") == kSuccess);
    CHECK(guest->code("alloc d 4194304 pool=p") == kSuccess);
    CHECK(guest->code("alloc e 99999999999") == kOutOfMemory);
    for (const char* block : {"free a", "freeasync b", "freeasync d"})
        CHECK(guest->code(block) == kSuccess);
    REQUIRE(guest->code("release 0") == kSuccess);  // which frees c
    const Recorded recorded(file);
    const std::string first = machine.uuids[2], second = machine.uuids[0];
    std::string gpus;
    for (const Row& row : recorded.rows)
        gpus += row.gpu == first ? '0' : row.gpu == second ? '1' : '?';
    CHECK(gpus == "1110101110");
    for (const Row& row : recorded.rows) {
        if (!limited)
            CHECK(row.limit + row.held == "");
        if (limited)
            CHECK(row.limit == (row.gpu == first ? "1073741824" : "536870912"));
    }
    if (!limited)
        return;
    // The first block, and what its context takes; a free is written before it is one.
    const auto held = [&](size_t row) { return std::stoull(recorded.rows.at(row).held); };
    CHECK(held(0) > 1048576);
    CHECK(held(0) < 536870912);
    CHECK(held(3) > 3145728);
    CHECK(held(6) >= held(0));
    CHECK(held(7) == held(6) - 1048576);
}

TEST_CASE("64 threads: no line is torn, and no address is handed out that is not free") {
    const Words& settings = GENERATE(kNothing, kGrowth, kDeferred, kPrealloc);
    const std::string largest = GENERATE("4000", "100000");  // of which all have room
    INFO((settings.empty() ? "" : settings.back()));
    Session session(settings, GENERATE("out.csv", "out.trace"));
    session.start();
    CHECK(session.guest.ask("storm 64 150 " + largest) == "0 0");
    const Recorded recorded(session.file);
    CHECK(recorded.live.empty());
    CHECK(recorded.rows.size() >= 64 * 150);
    CHECK(recorded.threads().size() == 64);
    CHECK(recorded.trace.size() == recorded.rows.size());
    CHECK(session.guest.finish() == 0);
    CHECK(session.guest.complaints().empty());
}

TEST_CASE("a free that fails leaves its block allocated") {
    const Words& settings = GENERATE(kDirect, kGrowth);
    Session session(
        joined(settings, {"CUSLICE_FAKE_INJECT=cuMemFree_v2:1=719,cuCtxSynchronize:1=719,cuCtxSynchronize_v2:1=719"}));
    session.start();
    REQUIRE(session.guest.code("alloc a 100000") == kSuccess);
    CHECK(session.guest.code("free a") == kLaunchFailed);
    const Recorded recorded(session.file);
    CHECK(recorded.text() == "allocate 100000; free 100000; allocate 100000; ");
    CHECK(recorded.live.size() == 1);
}

TEST_CASE("a context's end frees what is in it") {
    const Words& settings = GENERATE(kNothing, kDirect, kGrowth);
    INFO((settings.empty() ? "" : settings.back()));
    Session session(settings);
    session.start();
    for (int round = 0; round < 3; ++round) {
        REQUIRE(session.guest.code("current 0") == kSuccess);
        REQUIRE(session.guest.code("alloc a 1000") == kSuccess);
        REQUIRE(session.guest.code("create second 0") == kSuccess);
        REQUIRE(session.guest.code("alloc b 2000") == kSuccess);
        REQUIRE(session.guest.code("alloc c 3000 managed") == kSuccess);
        REQUIRE(session.guest.code("destroy second") == kSuccess);
        CHECK(Recorded(session.file).live.size() == 1);
        REQUIRE(session.guest.code(round == 2 ? "reset 0" : "release 0") == kSuccess);
        CHECK(Recorded(session.file).live.empty());
        if (round != 2)
            REQUIRE(session.guest.code("retain 0") == kSuccess);
    }
    CHECK(Recorded(session.file).rows.size() == 18);
}

TEST_CASE("what is captured into a graph is no allocation") {
    Session session(GENERATE(kNothing, kGrowth));
    session.start();
    REQUIRE(session.guest.code("alloc a 1000 async") == kSuccess);
    REQUIRE(session.guest.code("capture g 100000 free") == kSuccess);
    REQUIRE(session.guest.code("capture h 100000 leave") == kSuccess);
    REQUIRE(session.guest.code("launch g") == kSuccess);
    REQUIRE(session.guest.code("launch h") == kSuccess);
    REQUIRE(session.guest.code("graphfree h") == kSuccess);
    CHECK(Recorded(session.file).text() == "allocate 1000; ");
}

TEST_CASE("cancelled threads leave whole rows, and none too few") {
    const std::string how = GENERATE("deferred", "asynchronous"), what = GENERATE("plain", "async");
    const Words& settings = GENERATE(kNothing, kGrowth);
    // As in threads_test.cpp: an asynchronous one can only be met where it may strike, computing in the driver.
    const bool anywhere = how == "deferred";
    if (!anywhere && settings == kGrowth)
        return;
    if (!anywhere && !kSanitizer.empty()) {
        skip("asynchronous cancellation under a sanitizer");
        return;
    }
    const std::string delay = "=150us", delays = "CUSLICE_FAKE_INJECT=delay:cuMemAlloc_v2" + delay +
                                                 ",delay:cuMemFree_v2" + delay + ",delay:cuMemAllocAsync" + delay +
                                                 ",delay:cuMemFreeAsync" + delay;
    Session session(anywhere ? settings : joined(settings, {delays}));
    session.start();
    CHECK(session.guest.ask("cancel " + what + " " + how + " 40") == "0 40");
    CHECK(session.guest.code("storm 4 100 3000") == kSuccess);
    const Recorded recorded(session.file);
    CHECK(recorded.threads().size() > (anywhere ? 20 : 4));
}

TEST_CASE("a forked child writes nothing, and leaves its parent's file alone") {
    const std::string fork = GENERATE("fork", "rawfork");
    if (fork == "rawfork" && !kSanitizer.empty()) {
        skip("a sanitizer's runtime doesn't survive a fork past the C library");
        return;
    }
    const Words& settings = GENERATE(kNothing, kDirect, kGrowth);
    Session session(settings, GENERATE("out.csv", "out.trace"));
    session.start();
    const int parent = session.guest.pid();
    REQUIRE(session.guest.code("alloc a 1000") == kSuccess);
    const auto size = std::filesystem::file_size(session.file);
    REQUIRE(session.guest.code(fork) == kSuccess);
    const int child = session.guest.pid();
    REQUIRE(child != parent);
    session.guest.ask("free a");
    session.guest.ask("alloc b 2000");
    CHECK(Recorded(session.file).text() == "allocate 1000; ");
    CHECK(session.guest.finish() == 0);
    CHECK(std::filesystem::file_size(session.file) == size);  // not cut by the child's end
    CHECK_FALSE(std::filesystem::exists(session.file + "." + std::to_string(child)));
    CHECK(session.guest.complaints().empty());
}

TEST_CASE("a child that starts CUDA itself has a file of its own") {
    Session session(kNothing);
    REQUIRE(session.guest.code("fork") == kSuccess);  // before anything was loaded
    session.start();
    REQUIRE(session.guest.code("alloc a 1000") == kSuccess);
    CHECK(Recorded(session.file).text() == "allocate 1000; ");
    const std::string own = "out.csv." + std::to_string(session.guest.pid());
    REQUIRE(session.guest.code("exec linked") == kSuccess);
    session.start();
    REQUIRE(session.guest.code("alloc a 2000") == kSuccess);
    CHECK(Recorded(session.folder.path() + "/" + own).text() == "allocate 2000; ");
    REQUIRE(session.guest.code("exec linked") == kSuccess);
    session.start();
    REQUIRE(session.guest.code("alloc a 3000") == kSuccess);
    CHECK(Recorded(session.folder.path() + "/" + own + ".2").text() == "allocate 3000; ");
    CHECK(Recorded(session.file).text() == "allocate 1000; ");
}

TEST_CASE("a program that ends leaves its rows alone, and one that is killed has them, too") {
    const std::string name = GENERATE("out.csv", "out.trace");
    const bool killed = GENERATE(false, true);
    Session session(kDirect, name);
    session.start();
    CHECK(session.guest.ask("storm 4 300 3000") == "0 0");
    REQUIRE(session.guest.code("alloc a 1000") == kSuccess);
    const auto size = std::filesystem::file_size(session.file);
    if (killed)
        session.guest.kill(SIGKILL);
    CHECK(session.guest.finish() == (killed ? 128 + SIGKILL : 0));
    const Recorded recorded(session.file);
    CHECK(recorded.rows.back().bytes == 1000);
    CHECK(recorded.live.size() == 1);
    CHECK(recorded.rows.size() > 4 * 300);
    const std::string text = read_text(session.file);
    const bool cut = text.find(std::string(100, name == "out.csv" ? '\n' : '\0')) == text.npos;
    CHECK(cut != killed);
    CHECK((std::filesystem::file_size(session.file) == size) == killed);
    const auto may_write = std::filesystem::perms::owner_write;
    const auto mode = std::filesystem::status(session.file).permissions();
    CHECK(((mode & may_write) == may_write) != killed);
}

TEST_CASE("threads that allocate while others fork go on being recorded") {
    Session session(GENERATE(kNothing, kGrowth), GENERATE("out.csv", "out.trace"));
    session.start();
    CHECK(session.guest.ask("forks 20 4") == "0 0");
    const Recorded recorded(session.file);
    CHECK(recorded.live.empty());
    CHECK(recorded.threads().size() == 4);
}

TEST_CASE("a program that closes descriptors and opens files of its own gets none of the rows") {
    Session session(kNothing, GENERATE("out.csv", "out.trace"));
    session.start();
    REQUIRE(session.guest.code("alloc a 1000") == kSuccess);
    const std::string other = session.folder.path() + "/other";
    // The guest closes the fake driver's descriptors too, which the driver can do without.
    REQUIRE(session.guest.code("usurp " + other) == kSuccess);
    session.guest.ask("alloc b 2000");
    session.guest.ask("free a");
    CHECK(read_text(other).empty());
    CHECK(Recorded(session.file).rows.size() > 1);
    CHECK(session.guest.complaints().empty());
}

TEST_CASE("where space ends, or the file can't be made, one line says so and the program goes on") {
    const Words& settings = GENERATE(kNothing, kDirect, kGrowth);
    const std::string what = GENERATE("/dev/full", "/nowhere/out.csv", "limit");
    const Folder folder, books;
    const std::string file = what == "limit" ? folder.path() + "/out.csv" : what;
    Guest guest(Guest::route("linked"), sliced(kLaptop, books.path(), joined(settings, {"CUSLICE_RECORD=" + file})));
    use_device(guest);
    const std::string begin = "cuslice: recording has stopped, and the program goes on: can't ";
    std::string why = "write to /dev/full: No space left on device";
    if (what == "/nowhere/out.csv")
        why = "make /nowhere/out.csv: No such file or directory";
    uint64_t size = 0;
    if (what == "limit") {
        // The kernel's signal would end the program, were the file to grow.
        why = "write to " + file + ": File too large";
        REQUIRE(guest.code("alloc first 1000") == kSuccess);
        REQUIRE(guest.code("filelimit 2000") == 0);
        size = std::filesystem::file_size(file);
    }
    CHECK(guest.ask("storm 8 100 300000") == "0 0");
    CHECK(guest.code("alloc a 1000") == kSuccess);
    CHECK(guest.code("free a") == kSuccess);
    if (what == "limit") {
        CHECK(std::filesystem::file_size(file) <= size);
        CHECK(Recorded(file).rows.size() > 10);
    }
    CHECK(guest.finish() == 0);
    CHECK(guest.complaints() == Words{begin + why});
}

TEST_CASE("under LD_PRELOAD alone a relative path is refused, as nobody knows what it is relative to") {
    Guest guest(Guest::route("linked"), sliced(kLaptop, "", {"CUSLICE_RECORD=out.csv"}));
    CHECK(guest.code("init") == kInvalidValue);
    CHECK(guest.finish() == 0);
    CHECK(guest.complaints().at(0) ==
          "cuslice: CUSLICE_RECORD: out.csv: an absolute path is needed: only cuslice run knows the folder that it is "
          "relative to; no GPU will be used");
}

TEST_CASE("cuslice run records into the folder that it was started in, wherever the program goes") {
    const Machine machine(kLaptop);
    const Folder folder;
    const std::string program = "cd / && exec " + Guest::route("linked")[0] + " linked";
    for (const std::string name : {"a,b.csv", "with %p in it.csv", "and \"quotes\".csv"}) {
        const Words words =
            machine.launch({"--record", name}, {"/bin/sh", "-c",
                                                program + " <<END\n"
                                                          "init\nretain 0\ncurrent 0\nalloc a 1000\nEND\n"});
        const Outcome outcome = run(words, machine.outside(), folder.path());
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.err.empty());
        std::string expected = name;
        if (const auto at = name.find("%p"); at != name.npos)
            expected.replace(at, 2, std::to_string(outcome.pid));
        CHECK(Recorded(folder.path() + "/" + expected).text() == "allocate 1000; ");
    }
    // A second time it would be overwritten.
    const Outcome again = run(machine.launch({"--record", "a,b.csv"}, {"/bin/echo"}), machine.outside(), folder.path());
    CHECK(again.exit_code == 78);
    CHECK(again.err == "cuslice: --record: " + folder.path() +
                           "/a,b.csv: is there already, and nothing is overwritten: remove it, or name another file\n");
}

TEST_CASE("cuslice run refuses what can't be made before the program starts, and leaves nothing behind") {
    const Machine machine(kLaptop);
    const Folder folder;
    const std::string pipe = folder.path() + "/pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(machine.refused({"--record", "/nowhere/a.csv"}, 78) ==
          "cuslice: --record: /nowhere/a.csv: cannot be made: No such file or directory\n");
    CHECK(machine.refused({"--record", folder.path()}, 78) ==
          "cuslice: --record: " + folder.path() + ": is not a regular file\n");
    CHECK(machine.refused({"--record", pipe}, 78) == "cuslice: --record: " + pipe + ": is not a regular file\n");
    CHECK(machine.refused({"--record", "/proc/a.csv"}, 78) ==
          "cuslice: --record: /proc/a.csv: cannot be made: No such file or directory\n");
    CHECK(machine.refused({"--record-stacks"}, 78) ==
          "cuslice: --record-stacks: yes: stacks go into a recording: name its file with --record\n");
    const Outcome fine = run(machine.launch({"--record", folder.path() + "/a.csv"}, {"/bin/true"}), machine.outside());
    CHECK(fine.exit_code == 0);
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/a.csv"));
}

TEST_CASE("inside another cuslice run the programs of both are recorded, each in a file of its own") {
    const Machine machine(kLaptop);
    const Folder folder;
    const std::string guest = Guest::route("linked")[0] + " linked";
    const std::string input = "<<END\ninit\nretain 0\ncurrent 0\nalloc a 1000\nEND\n";
    const std::string script = guest + " " + input + kLaunch + " run --limit 1GiB -- " + guest + " " + input;
    const Outcome outcome =
        run(machine.launch({"--record", folder.path() + "/a.csv"}, {"/bin/sh", "-c", script}), machine.outside());
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    unsigned files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        ++files;
        CHECK(Recorded(entry.path().string()).text() == "allocate 1000; ");
    }
    CHECK(files == 2);
}

TEST_CASE("the benchmark's reader takes RMM's own files, and names the line that makes no sense") {
    const std::string header = "Thread,Time,Action,Pointer,Size,Stream\n";
    const auto read = [&](const std::string& text, bench::Trace& trace) {
        std::istringstream stream(text);
        std::string why;
        return bench::read_recorded(stream, trace, why) ? "" : why;
    };
    bench::Trace trace;
    CHECK(read(header + "1,10:00:00:000001,allocate,0x10,100,0x0\n1,10:00:00:000002,allocate,0x20,200,0\n"
                        "2,10:00:00:000003,free,0x10,100,0x0\n1,10:00:00:000004,allocate failure,0x0,300,0x0\n"
                        "1,10:00:00:000005,allocate,0x30,400,0x0\n1,10:00:00:00",
               trace) == "");
    REQUIRE(trace.size() == 4);
    CHECK(bench::peak_of(trace) == 600);
    CHECK(bench::blocks_of(trace) == 2);
    CHECK(read("", trace) == "line 1: no columns Action, Pointer and Size");
    CHECK(read("Thread,Time,Action,Pointer,Size,Stream,GPU,Limit,Held\n1,2,allocate,0x10,100,0x0,GPU-5f,,\n", trace) ==
          "");
    CHECK(trace.size() == 1);
    CHECK(read(header + "1,2,allocate,0x10,100,0x0\n1,2,allocate,0x10,100,0x0\n", trace) ==
          "line 3: 1,2,allocate,0x10,100,0x0");
    CHECK(read(header + "1,2,free,0x10,100,0x0\n", trace) == "line 2: 1,2,free,0x10,100,0x0");
    CHECK(read(header + "1,2,allocate,0x1", trace) == "");
    CHECK(read(header + "1,2,allocate,0x1\n", trace) == "line 2: 1,2,allocate,0x1");
    CHECK(read(header + "1,2,allocate,x,100,0x0\n", trace) == "line 2: 1,2,allocate,x,100,0x0");
}

}  // namespace cuslice::tests
