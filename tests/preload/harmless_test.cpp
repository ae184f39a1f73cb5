// SPDX-License-Identifier: Apache-2.0
// A guest is never in its host's way: what it writes, keeps open and reads can't end, stop or damage the program.
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

constexpr char kLaptop[] = "1xlaptop-2g";
const Words kLimit{"CUSLICE_LIMIT=1024MiB", "CUSLICE_HEADROOM=16MiB"};

Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

struct Host {
    explicit Host(const Words& settings = {})
        : guest(Guest::route("linked"), sliced(kLaptop, books.path(), with(kLimit, settings))) {}
    void start() { retain_device(guest); }
    // A refusal is what has a line.
    int refused() { return guest.code("alloc huge " + bytes(4 * kGiB)); }

    Folder folder, books;
    Guest guest;
};

// Under the launcher, with a limit of 1 GiB.
struct Launched {
    explicit Launched(const std::string& fake = kLaptop, const Words& options = {})
        : guest(with(with({CUSLICE_TEST_LAUNCH, "run", "--per-process", "--fake", fake, "--limit", "1GiB"}, options),
                     {"--", kGuests + "/guest_linked", "linked"}),
                environment(books)) {}
    static Words environment(const Folder& books) {
        Words all = plain({"CUSLICE_FAKE_DIR=" + books.path()});
        if (!kSanitizerRuntime.empty())
            all.push_back("LD_PRELOAD=" + kSanitizerRuntime);
        return all;
    }

    Folder books;
    Guest guest;
};

}  // namespace

TEST_CASE("a message that nobody can read is lost, and the program goes on") {
    const std::string kind = GENERATE("broken", "full", "socket");
    CAPTURE(kind);
    Host host;
    host.start();
    REQUIRE(host.guest.code("stderr " + kind) == kSuccess);
    const std::string before = host.guest.ask("self");
    CHECK(host.refused() == kOutOfMemory);
    CHECK(host.guest.ask("self") == before);  // no signal is left waiting or held back
    CHECK(host.guest.code("alloc a 1000") == kSuccess);
}

TEST_CASE("a file that a program opens in place of its stderr gets no message of ours") {
    Host host;
    const std::string file = host.folder.write("data", "the program's own");
    if (GENERATE(false, true))
        host.start();
    REQUIRE(host.guest.code("reuse " + file) == 0);
    host.start();
    CHECK(host.refused() == kOutOfMemory);
    CHECK(read_text(file) == "the program's own");
}

TEST_CASE("a program that redirects its stderr to a file of messages finds ours in it") {
    Host host;
    const std::string file = host.folder.path() + "/messages";
    REQUIRE(host.guest.code("stderr append " + file) == kSuccess);
    host.start();
    CHECK(host.refused() == kOutOfMemory);
    CHECK(read_text(file).find("tried to allocate 4096.0 MiB") != std::string::npos);
}

TEST_CASE("a file of messages that may not become larger ends no program") {
    const Folder folder;
    const std::string file = folder.path() + "/log";
    Host host({"CUSLICE_LOG=info:" + file});
    host.start();
    const auto size = std::filesystem::file_size(file);
    REQUIRE(host.guest.code("filelimit " + bytes(size)) == 0);
    CHECK(host.refused() == kOutOfMemory);
    CHECK(host.guest.code("alloc a 1000") == kSuccess);
    CHECK(std::filesystem::file_size(file) == size);
}

TEST_CASE("a pipe that nobody reads is no file of messages, and is not waited for") {
    const Folder folder;
    const std::string pipe = folder.path() + "/log";
    REQUIRE(mkfifo(pipe.c_str(), 0644) == 0);
    Host host({"CUSLICE_LOG=info:" + pipe});
    host.start();
    CHECK(host.refused() == kOutOfMemory);
    CHECK_FALSE(host.guest.complaints().empty());  // they are on stderr instead
}

TEST_CASE("handles of blocks are never written into a file of the program's") {
    Host host({"CUSLICE_ALLOCATOR=growth"});
    host.start();
    // The blocks lie in several segments, and most are not the first of theirs.
    const auto each = [&](const std::string& command, const std::string& more) {
        Words answers;
        for (int i = 0; i < 60; ++i)
            answers.push_back(host.guest.ask(command + " block" + bytes(static_cast<unsigned>(i)) + more));
        return answers;
    };
    for (const std::string& answer : each("alloc", " 300000"))
        REQUIRE(answer.rfind("0 ", 0) == 0);
    REQUIRE(host.guest.code("ipcget block1") == kSuccess);
    const std::string file = host.folder.path() + "/other";
    REQUIRE(host.guest.code("usurp " + file) == kSuccess);
    const Words handles = each("ipcget", "");
    REQUIRE(std::filesystem::exists(file));
    CHECK(read_text(file).empty());
    // The handles are good: what they lead to is there, under a number that programs don't count on.
    const std::string ours = "cuslice block 1";
    std::string magic;
    for (const char c : ours)
        magic += "0123456789abcdef"[c >> 4 & 15], magic += "0123456789abcdef"[c & 15];
    unsigned of_blocks = 0;
    for (const std::string& handle : handles)
        of_blocks += handle.rfind("0 " + magic, 0) == 0;
    CHECK(of_blocks > 2);
}

TEST_CASE("a program that clears its environment keeps the limit that the launcher gave it") {
    Launched launched("3xlaptop-2g", {"--gpus", "1"});
    REQUIRE(launched.guest.code("clearenv PATH CUSLICE_FAKE CUSLICE_FAKE_DIR") == kSuccess);
    retain_device(launched.guest);
    CHECK(launched.guest.number("count") == 1);
    CHECK(launched.guest.number("total 0") == kGiB);
    CHECK(launched.guest.code("alloc a " + bytes(kGiB)) == kOutOfMemory);
    const Words said = launched.guest.complaints();
    REQUIRE(said.size() == 2);
    CHECK(said[0].rfind("cuslice: the program has cleared its environment", 0) == 0);
}

TEST_CASE("a program without any environment runs") {
    const bool launcher = GENERATE(false, true);
    CAPTURE(launcher);
    Host plain_host;
    Launched launched;
    Guest& guest = launcher ? launched.guest : plain_host.guest;
    REQUIRE(guest.code("nullenv") == kSuccess);
    CHECK(guest.code("init") >= 0);
    CHECK(guest.finish() == 0);
}

TEST_CASE("in a program with more rights than its user nobody's variables, files or folders count") {
    const Folder folder, books;
    // Set-group-ID to a group that isn't this process's.
    const std::string program = folder.path() + "/guest", log = folder.path() + "/log",
                      record = folder.path() + "/rows";
    std::filesystem::copy_file(kGuests + "/guest", program);
    const bool made =
        chown(program.c_str(), static_cast<uid_t>(-1), getegid() + 1) == 0 && chmod(program.c_str(), 02755) == 0;
    Words environment = plain({"CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(), "HOME=" + folder.path(),
                               "CUSLICE_LOG=debug:" + log, "CUSLICE_RECORD=" + record, "CUSLICE_DRIVER=/nowhere.so"});
    folder.write(".config/cuslice/cuslice.toml", "no settings at all");
    Guest guest({program, "dlopen=" + kPreloaded}, environment);
    if (!made || !kSanitizer.empty() || guest.ask("secure") != "1") {
        skip("no program can be given a group's rights here");
        return;
    }
    // Refused settings would be CUDA_ERROR_INVALID_VALUE. There is no driver here; or if there is, it is a real one.
    const int started = guest.code("init");
    CHECK(started != kInvalidValue);
    guest.finish();
    CHECK_FALSE(std::filesystem::exists(log));
    CHECK_FALSE(std::filesystem::exists(record));
    CHECK(guest.err().find("/nowhere.so") == std::string::npos);
}

TEST_CASE("of two copies of the library the first one counts, and a line says so") {
    const Folder folder, books;
    const std::string copy = folder.path() + "/libcuslice.so";
    std::filesystem::copy_file(kPreloaded, copy);
    Words environment = sliced(kLaptop, books.path(), kLimit);
    for (std::string& line : environment)
        if (line.rfind("LD_PRELOAD=", 0) == 0)
            line += ":" + copy;
    Guest guest(Guest::route("linked"), environment);
    retain_device(guest);
    CHECK(guest.number("total 0") == kGiB);
    const Words said = guest.complaints();
    REQUIRE(said.size() == 1);
    CHECK(said[0].find(copy) != std::string::npos);
}

TEST_CASE("a program that was built with AddressSanitizer runs under the launcher, as it does without") {
    if (!kSanitizer.empty()) {
        skip("a program has one sanitizer's runtime");
        return;
    }
    const std::string launcher = CUSLICE_TEST_LAUNCH;
    const Folder books;
    for (const char* options : {"", "detect_leaks=0"}) {
        Words environment = Launched::environment(books);
        for (std::string& line : environment)
            if (line.rfind("ASAN_OPTIONS=", 0) == 0)
                line = std::string("ASAN_OPTIONS=") + options;
        const Outcome outcome = run(
            {launcher, "run", "--fake", kLaptop, "--limit", "1GiB", "--", kGuests + "/guest_sanitized"}, environment);
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.out == "1 " + bytes(kGiB) + "\n");
        CHECK(outcome.err.empty());
    }
}

TEST_CASE("a process whose name a terminal would obey is shown by a name that it doesn't") {
    const Folder books, folder;
    const std::string program = folder.path() + "/\x1b[31mR\nED", launcher = CUSLICE_TEST_LAUNCH;
    std::filesystem::create_symlink(kGuests + "/guest_linked", program);
    Words environment = Launched::environment(books);
    environment.push_back("CUSLICE_DIR=" + books.path() + "/ledger");
    const auto command = [&](const Words& words) { return with({launcher, "run", "--fake", kLaptop}, words); };
    Guest guest(command({"--fraction", "0.8", "--", program, "linked"}), environment);
    retain_device(guest);
    const Outcome shown = run({launcher, "ps"}, environment);
    CHECK(shown.out.find("\\x1b[31mR\\x0aED") != std::string::npos);
    CHECK(shown.out.find('\x1b') == std::string::npos);
    const Outcome refused = run(command({"--fraction", "0.8", "--", "/bin/true"}), environment);
    CHECK(refused.exit_code == 75);
    CHECK(refused.err.find("(\\x1b[31mR\\x0aED, user ") != std::string::npos);
    CHECK(refused.err.find('\x1b') == std::string::npos);
}

TEST_CASE("threads with small stacks may be the first to call") {
    if (!kSanitizer.empty()) {
        skip("a sanitizer's runtime takes more of a stack itself");
        return;
    }
    const Words& settings = GENERATE(Words{}, Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_SPLIT=0=500MiB+500MiB"},
                                     Words{"CUSLICE_RECORD=/dev/null"});
    CAPTURE(settings);
    Host host(settings);
    // On aarch64 no thread may have less than 128 KiB.
    const std::string on_small = "stack " + bytes(std::max<uint64_t>(32768, PTHREAD_STACK_MIN)) + " ";
    for (const char* line : {"init", "retain 0", "current 0", "alloc a 1000", "alloc b 100000000", "info", "free a"})
        CHECK(host.guest.code(on_small + line) == kSuccess);
    CHECK(host.guest.code(on_small + "alloc huge " + bytes(4 * kGiB)) == kOutOfMemory);
}

}  // namespace cuslice::tests
