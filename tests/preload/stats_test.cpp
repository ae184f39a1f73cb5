// SPDX-License-Identifier: Apache-2.0
// Figures of the caches: for the program by cuslice_memory_stats, for people by cuslice stats, in the line after a
// refusal and in the log's dump.
#include <atomic>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

constexpr char kLaptop[] = "1xlaptop-2g";

struct Tally {
    uint64_t current, peak, allocated, freed;
    bool operator==(const Tally&) const = default;
};

// The answer of the guest's memorystats.
struct Stats {
    explicit Stats(Guest& guest, int device = 0) {
        const Words words = split_words(guest.ask("memorystats " + std::to_string(device)));
        REQUIRE(words.size() == 26);
        REQUIRE(words[0] == std::to_string(kSuccess));
        std::vector<uint64_t> n;
        for (size_t i = 2; i < words.size(); ++i)
            n.push_back(std::stoull(words[i]));
        const auto tally = [&](size_t at) { return Tally{n[at], n[at + 1], n[at + 2], n[at + 3]}; };
        allocated = tally(0), requested = tally(4), active = tally(8), reserved = tally(12);
        allocations = n[16], frees = n[17], segments = n[18], retries = n[19], ooms = n[20], syncs = n[21];
        largest_free = n[22], own_memory = n[23];
    }
    Tally allocated{}, requested{}, active{}, reserved{};
    uint64_t allocations = 0, frees = 0, segments = 0, retries = 0, ooms = 0, syncs = 0, largest_free = 0,
             own_memory = 0;
};

Outcome ask_stats(int pid, const std::string& books, const Words& more = {}, const std::string& fake = kLaptop) {
    return run(joined({kLaunch, "stats", std::to_string(pid), "--fake", fake}, more),
               plain({"CUSLICE_FAKE_DIR=" + books}));
}

Json stats_of(int pid, const std::string& books) {
    const Outcome outcome = ask_stats(pid, books, {"--json"});
    CHECK(outcome.err.empty());
    REQUIRE(outcome.exit_code == 0);
    const Json answer = Json::parse(outcome.out);
    CHECK(answer["version"] == 1);
    CHECK(answer["pid"] == pid);
    return answer["gpus"];
}

Tally tally_of(const Json& json) { return {json["current"], json["peak"], json["allocated"], json["freed"]}; }

std::vector<std::string> files_in(const std::string& books) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(books + "/ledger"))
        if (entry.path().extension() == ".figures")
            names.push_back(entry.path().filename());
    return names;
}

}  // namespace

TEST_CASE("cuslice_memory_stats: exact figures after a known sequence, and cuslice stats says the same") {
    const std::string free = GENERATE("strict", "deferred");
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free});
    CHECK(scene.guest.code("memorystats 0") == kSuccess);
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc b 1000") == kSuccess);
    const Stats two(scene.guest);
    CHECK(two.allocated == Tally{100 * kMiB + 1024, 100 * kMiB + 1024, 100 * kMiB + 1024, 0});
    CHECK(two.requested == Tally{100 * kMiB + 1000, 100 * kMiB + 1000, 100 * kMiB + 1000, 0});
    CHECK(two.active == two.allocated);
    CHECK(two.reserved == Tally{108 * kMiB, 108 * kMiB, 108 * kMiB, 0});
    CHECK(two.allocations == 2);
    CHECK(two.frees == 0);
    CHECK(two.segments == 2);
    CHECK(two.largest_free == 8 * kMiB - 64 * 1024);
    CHECK(two.own_memory > 0);

    REQUIRE(scene.guest.code("free a") == kSuccess);
    const Stats one(scene.guest);
    CHECK(one.allocated == Tally{1024, 100 * kMiB + 1024, 100 * kMiB + 1024, 100 * kMiB});
    CHECK(one.active.current == 1024);  // so much is worth asking the GPU, which is idle
    CHECK(one.reserved == two.reserved);
    CHECK(one.frees == 1);

    const Json gpu = stats_of(scene.guest.pid(), scene.books.path()).at(0);
    CHECK(gpu["allocator"] == "growth");
    CHECK(gpu["contexts"] == 1);
    CHECK(tally_of(gpu["allocated"]) == one.allocated);
    CHECK(tally_of(gpu["requested"]) == one.requested);
    CHECK(tally_of(gpu["active"]) == one.active);
    CHECK(tally_of(gpu["reserved"]) == one.reserved);
    CHECK(gpu["allocations"] == one.allocations);
    CHECK(gpu["frees"] == one.frees);
    CHECK(gpu["segments"] == one.segments);
    CHECK(gpu["largest_free"] == one.largest_free);
    CHECK(gpu["seconds_ago"] < 60);

    REQUIRE(scene.guest.code("free b") == kSuccess);
    CHECK(Stats(scene.guest).allocated.current == 0);
    CHECK(Stats(scene.guest).active.current == (free == "deferred" ? 1024 : 0));

    const Outcome table = ask_stats(scene.guest.pid(), scene.books.path());
    CHECK(table.exit_code == 0);
    INFO(table.out);
    std::string row;
    for (const std::string& line : split_lines(table.out))
        if (line.find("  reserved ") != line.npos)
            for (const std::string& word : split_words(line))
                row += " " + word;
    CHECK(row.find(" reserved 108.0 MiB 108.0 MiB 108.0 MiB 0 bytes") != row.npos);
    CHECK(table.out.find(" s ago\n") != std::string::npos);
}

TEST_CASE("what was refused or had only by giving cached memory back is counted") {
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth"});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(500 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("free a") == kSuccess);
    REQUIRE(scene.guest.code("alloc b " + bytes(600 * kMiB)) == kSuccess);
    CHECK(Stats(scene.guest).retries == 1);
    CHECK(Stats(scene.guest).ooms == 0);
    CHECK(scene.guest.code("alloc c " + bytes(900 * kMiB)) == kOutOfMemory);
    const Stats refused(scene.guest);
    CHECK(refused.ooms == 1);
    CHECK(refused.reserved == Tally{600 * kMiB, 600 * kMiB, 1100 * kMiB, 500 * kMiB});
    CHECK(stats_of(scene.guest.pid(), scene.books.path()).at(0)["ooms"] == 1);
}

TEST_CASE("figures that are read while threads are at it are of one moment, and possible") {
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a 100000") == kSuccess);
    const int pid = scene.guest.pid();
    for (const std::string largest : {"3000", "300000"}) {
        std::atomic<bool> over{false};
        std::thread storm([&] {
            CHECK(scene.guest.ask("storm 4 300000 " + largest) == "0 0");
            over = true;
        });
        unsigned looks = 0, wrong = 0;
        // A look while something is being written all the time finds no GPU. One at the end finds it.
        while (!over || looks == 0) {
            const Outcome outcome = ask_stats(pid, scene.books.path(), {"--json"});
            const Json gpus = Json::parse(outcome.out)["gpus"];
            if (gpus.empty() && !over)
                continue;
            ++looks;
            for (const char* name : {"allocated", "requested", "active", "reserved"}) {
                const Tally tally = tally_of(gpus.at(0)[name]);
                wrong += tally.current != tally.allocated - tally.freed || tally.current > tally.peak ||
                         tally.freed > tally.allocated || tally.peak > 1024 * kMiB;
            }
        }
        storm.join();
        CAPTURE(largest, looks);
        CHECK(looks > 0);
        CHECK(wrong == 0);
    }
    CHECK(Stats(scene.guest).allocated.current == 100352);
    CHECK(Stats(scene.guest).allocated.peak < 1024 * kMiB);
}

TEST_CASE("two contexts of a GPU count together, also after the end of one") {
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth"});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("create second 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc b " + bytes(200 * kMiB)) == kSuccess);
    const Stats both(scene.guest);
    CHECK(both.allocated == Tally{300 * kMiB, 300 * kMiB, 300 * kMiB, 0});
    CHECK(both.reserved == both.allocated);
    CHECK(both.segments == 2);
    CHECK(stats_of(scene.guest.pid(), scene.books.path()).at(0)["contexts"] == 2);

    REQUIRE(scene.guest.code("destroy second") == kSuccess);
    const Stats after(scene.guest);
    CHECK(after.allocated == Tally{100 * kMiB, 300 * kMiB, 300 * kMiB, 200 * kMiB});
    CHECK(after.reserved == after.allocated);
    CHECK(after.allocations == 2);
    CHECK(after.frees == 0);
    CHECK(after.segments == 1);
    const Json gpu = stats_of(scene.guest.pid(), scene.books.path()).at(0);
    CHECK(tally_of(gpu["reserved"]) == after.reserved);
    CHECK(gpu["contexts"] == 1);

    // A context that comes later begins with nothing; the peak of the two before stands.
    REQUIRE(scene.guest.code("create third 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc c " + bytes(50 * kMiB)) == kSuccess);
    CHECK(Stats(scene.guest).allocated == Tally{150 * kMiB, 300 * kMiB, 350 * kMiB, 200 * kMiB});
}

TEST_CASE("each GPU has figures of its own, and one without a cache has none") {
    const Folder books;
    Guest guest(Guest::route("linked"),
                sliced("3xt4", books.path(),
                       {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=0=growth,1=growth", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
    CHECK(guest.code("memorystats 0") == kNotInitialized);
    REQUIRE(guest.code("init") == kSuccess);
    for (const std::string ordinal : {"0", "1", "2"}) {
        REQUIRE(guest.code("retain " + ordinal) == kSuccess);
        REQUIRE(guest.code("current " + ordinal) == kSuccess);
        REQUIRE(guest.code("alloc " + ordinal + " " + bytes((std::stoul(ordinal) + 1) * 100 * kMiB)) == kSuccess);
    }
    CHECK(Stats(guest, 0).allocated.current == 100 * kMiB);
    CHECK(Stats(guest, 1).allocated.current == 200 * kMiB);
    CHECK(guest.code("memorystats 2") == kNotSupported);
    CHECK(guest.code("memorystats 3") == kInvalidDevice);
    CHECK(guest.code("memorystats -1") == kInvalidDevice);
    const Outcome outcome = ask_stats(guest.pid(), books.path(), {"--json"}, "3xt4");
    const Json gpus = Json::parse(outcome.out)["gpus"];
    REQUIRE(gpus.size() == 2);
    CHECK(gpus[1]["allocated"]["current"] == 200 * kMiB);
    CHECK(gpus[1]["gpu"] == split_words(guest.ask("uuid 1")).at(1));

    // A context on another GPU doesn't take over what an ended one did.
    REQUIRE(guest.code("reset 0") == kSuccess);
    REQUIRE(guest.code("current 1") == kSuccess);
    REQUIRE(guest.code("create more 1") == kSuccess);
    REQUIRE(guest.code("alloc x 100000") == kSuccess);
    CHECK(Stats(guest, 0).allocations == 1);
    CHECK(Stats(guest, 1).allocations == 2);
}

TEST_CASE("a program built with an older or a newer structure gets as much as it knows, and no more") {
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth"});
    enter_device(scene.guest);
    const uint64_t size = scene.guest.number("memorystats 0");
    CHECK(scene.guest.number("memorystats 0 " + bytes(size + 64)) == size);
    CHECK(scene.guest.code("memorystats 0 " + bytes(size - 1)) == kInvalidValue);
    CHECK(scene.guest.code("memorystats 0 0") == kInvalidValue);
}

TEST_CASE("a forked child has no figures, and leaves its parent's alone") {
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth"});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB)) == kSuccess);
    const int parent = scene.guest.pid();
    REQUIRE(scene.guest.code("fork") == kSuccess);
    const int child = scene.guest.pid();
    REQUIRE(child != parent);
    CHECK(scene.guest.code("memorystats 0") == kNotSupported);
    scene.guest.code("alloc b " + bytes(100 * kMiB));
    CHECK(ask_stats(child, scene.books.path()).exit_code == 69);
    CHECK(stats_of(parent, scene.books.path()).at(0)["allocated"]["current"] == 100 * kMiB);
}

TEST_CASE("figures are shown of the process and the program that they are of, and of no other") {
    const Folder books;
    const Words settings{"CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=growth"};
    auto first = std::make_unique<Guest>(Guest::route("linked"), sliced(kLaptop, books.path(), settings));
    Guest plain_one(Guest::route("linked"), sliced(kLaptop, books.path(), {"CUSLICE_LIMIT=1GiB"}));
    for (Guest* guest : {first.get(), &plain_one}) {
        REQUIRE(guest->code("init") == kSuccess);
        enter_device(*guest);
    }
    const int pid = first->pid();
    CHECK(stats_of(pid, books.path()).size() == 1);

    const Outcome none = ask_stats(plain_one.pid(), books.path());
    CHECK(none.exit_code == 69);
    CHECK(none.out.empty());
    CHECK(none.err.find("(guest_linked) keeps no cache") != std::string::npos);
    const std::string nobody = std::to_string(4194304);  // the most that a pid can be, and one more
    CHECK(ask_stats(std::stoi(nobody), books.path()).err == "cuslice: there is no process " + nobody + " here\n");

    // The same under another's name, as if the pid had come back.
    REQUIRE(files_in(books.path()).size() == 1);
    const std::string own = files_in(books.path())[0];
    const std::string space = own.substr(0, own.find('-'));
    std::istringstream stat(read_text("/proc/" + std::to_string(plain_one.pid()) + "/stat"));
    std::string word;
    for (int field = 0; field < 22; ++field)
        stat >> word;  // its command has no blank in it
    const std::string forged = space + "-" + std::to_string(plain_one.pid()) + "-" + word + ".figures";
    std::filesystem::copy_file(books.path() + "/ledger/" + own, books.path() + "/ledger/" + forged);
    CHECK(ask_stats(plain_one.pid(), books.path()).exit_code == 69);

    // Another program in the same process.
    REQUIRE(first->code("exec linked") == kSuccess);
    REQUIRE(first->pid() == pid);
    CHECK(ask_stats(pid, books.path()).exit_code == 69);
    REQUIRE(first->code("init") == kSuccess);
    enter_device(*first);
    REQUIRE(first->code("alloc a " + bytes(10 * kMiB)) == kSuccess);
    CHECK(stats_of(pid, books.path()).at(0)["allocated"]["allocated"] == 10 * kMiB);

    // A dead one, before and after its parent has asked for its end.
    first->kill(9);
    first.reset();
    const Outcome dead = ask_stats(pid, books.path());
    CHECK(dead.exit_code == 69);
    CHECK(dead.err == "cuslice: there is no process " + std::to_string(pid) + " here\n");
    CHECK(files_in(books.path()) == Words{forged});
}

TEST_CASE("a dead process's file is removed by the next one that makes its own") {
    const Folder books;
    const Words settings{"CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=growth"};
    std::string before;
    for (int round = 0; round < 3; ++round) {
        Guest guest(Guest::route("linked"), sliced(kLaptop, books.path(), settings));
        REQUIRE(guest.code("init") == kSuccess);
        enter_device(guest);
        const auto files = files_in(books.path());
        REQUIRE(files.size() == 1);
        CHECK(files[0] != before);
        before = files[0];
        guest.kill(9);
        guest.finish();
    }
}

TEST_CASE("where there is no place for the file the program goes on, and only log = debug says so") {
    const std::string level = GENERATE("info", "debug");
    const Folder books;
    const std::string file = books.write("file", "");
    Guest guest(Guest::route("linked"), sliced(kLaptop, books.path(),
                                               {"CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=growth", "CUSLICE_DIR=" + file,
                                                "CUSLICE_LOG=" + level}));
    REQUIRE(guest.code("init") == kSuccess);
    enter_device(guest);
    CHECK(guest.code("alloc a " + bytes(10 * kMiB)) == kSuccess);
    CHECK(Stats(guest).allocated.current == 10 * kMiB);
    CHECK(guest.finish() == 0);
    const bool said = guest.err().find("cuslice stats can't show this process: can't use") != std::string::npos;
    CHECK(said == (level == "debug"));
}

TEST_CASE("a refusal is followed by a word that the cache is not used where nothing comes from cuMemAlloc") {
    const std::string kind = GENERATE("async", "managed");
    CAPTURE(kind);
    Scene scene(kLaptop, {"CUSLICE_ALLOCATOR=growth"});
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB) + " " + kind) == kSuccess);
    CHECK(scene.guest.code("alloc b " + bytes(900 * kMiB) + " " + kind) == kOutOfMemory);
    REQUIRE(scene.guest.code("alloc c 1000") == kSuccess);
    CHECK(scene.guest.code("alloc d " + bytes(950 * kMiB) + " " + kind) == kOutOfMemory);
    REQUIRE(scene.guest.finish() == 0);
    const Words said = scene.guest.complaints();
    REQUIRE(said.size() == 4);
    CHECK(said[1] ==
          "cuslice: GPU 0 (NVIDIA GeForce 940MX): the cache is not used: this program has asked cuMemAlloc for "
          "nothing");
    CHECK(said[3].find(": the cache holds ") != std::string::npos);
}

TEST_CASE("a refusal is followed by what the cache holds, once, and log = debug writes down every block") {
    const Folder folder;
    const std::string log = folder.path() + "/log";
    const bool debug = GENERATE(false, true);
    Words settings{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"};
    if (debug)
        settings.push_back("CUSLICE_LOG=debug:" + log);
    Scene scene(kLaptop, settings);
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc b " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc c 1000") == kSuccess);
    REQUIRE(scene.guest.code("alloc d 70000") == kSuccess);
    CHECK(scene.guest.code("alloc e " + bytes(900 * kMiB)) == kOutOfMemory);
    CHECK(scene.guest.code("alloc e " + bytes(900 * kMiB)) == kOutOfMemory);
    const Stats stats(scene.guest);
    REQUIRE(scene.guest.finish() == 0);

    const std::string said = debug ? read_text(log) : scene.guest.err();
    const std::string line =
        ": the cache holds " + std::to_string(stats.reserved.current / kMiB) + ".0 MiB in " +
        std::to_string(stats.segments) +
        " segments: 200.1 MiB allocated, 0 bytes freed but possibly in use by the GPU; the largest free block";
    CHECK(said.find(line) != std::string::npos);
    if (!debug) {
        CHECK(scene.guest.complaints().size() == 2);  // the same again has no line
        return;
    }
    unsigned dumps = 0;
    std::istringstream lines(said);
    for (std::string text; std::getline(lines, text);) {
        if (text.rfind("cuslice: {", 0) != 0)
            continue;
        ++dumps;
        const Json dump = Json::parse(text.substr(9));
        REQUIRE(dump["caches"].size() == 1);
        uint64_t segments = 0, used = 0, requested = 0, spans = 0;
        for (const Json& segment : dump["caches"][0]["segments"]) {
            uint64_t sum = 0;
            for (const Json& block : segment["blocks"]) {
                sum += block["bytes"].get<uint64_t>();
                if (block["state"] == "used")
                    used += block["bytes"].get<uint64_t>();
                if (block["state"] == "used")
                    requested += block["requested"].get<uint64_t>();
                if (block["state"] == "span")
                    spans += block["cut_into"] == 1024;
            }
            CHECK(sum == segment["bytes"]);
            segments += sum;
        }
        CHECK(segments == stats.reserved.current);
        CHECK(used == 200 * kMiB + 70144);
        CHECK(requested == 200 * kMiB + 70000);
        CHECK(spans == 1);
    }
    CHECK(dumps == 1);
}

}  // namespace cuslice::tests
