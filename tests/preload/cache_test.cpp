// SPDX-License-Identifier: Apache-2.0
// allocator = growth and prealloc, as a program sees them: a slice of which freed memory is kept, and no difference
// otherwise.
#include <signal.h>

#include <chrono>

#include "tests/preload/naps.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

constexpr char kLaptop[] = "1xlaptop-2g";

Words cached(const std::string& allocator, const Words& more = {}) {
    Words words{"CUSLICE_ALLOCATOR=" + allocator};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

}  // namespace

TEST_CASE("growth: freed memory stays with the process, and counts as free") {
    const std::string free = GENERATE("strict", "deferred");
    Scene scene(kLaptop, cached("growth", {"CUSLICE_FREE=" + free}));
    enter_device(scene.guest);
    const uint64_t context = scene.held().used, before = scene.free();
    for (int round = 0; round < 3; ++round) {
        REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB)) == kSuccess);
        REQUIRE(scene.guest.code("alloc b 1000") == kSuccess);
        CHECK(before - scene.free() >= 100 * kMiB);
        CHECK(before - scene.free() < 101 * kMiB);
        REQUIRE(scene.guest.code("free a") == kSuccess);
        REQUIRE(scene.guest.code("free b") == kSuccess);
        CHECK(scene.free() == before);
    }
    CHECK(scene.held().used >= context + 102 * kMiB);
    CHECK(scene.held().used < context + 120 * kMiB);
    CHECK(scene.held().peak <= 1024 * kMiB);
}

TEST_CASE("prealloc: the slice less headroom is taken at the first context, so that a neighbour can't have it") {
    Scene scene(kLaptop, cached("prealloc"));
    enter_device(scene.guest);
    CHECK(scene.held().used > 1024 * kMiB - 16 * kMiB - 2 * kMiB);
    CHECK(scene.held().used <= 1024 * kMiB - 16 * kMiB);
    Guest neighbour(Guest::route("linked"), raw(kLaptop, scene.books.path()));
    use_device(neighbour);
    CHECK(neighbour.code("alloc a " + bytes(800 * kMiB)) == kOutOfMemory);
    CHECK(scene.guest.code("alloc a " + bytes(600 * kMiB)) == kSuccess);
}

TEST_CASE("prealloc: a module that fits the slice loads, and one that doesn't is refused by the same line") {
    Scene scene(kLaptop, cached("prealloc"));
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc small 1000") == kSuccess);
    CHECK(scene.guest.code("module m " + bytes(200 * kMiB)) == kSuccess);
    CHECK(scene.held().peak <= 1024 * kMiB + 200 * kMiB);
    CHECK(scene.held().used <= 1024 * kMiB);
    CHECK(scene.held().used > 1000 * kMiB);  // what is left of the slice is taken again
    CHECK(scene.guest.code("alloc b " + bytes(200 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("module n " + bytes(400 * kMiB)) == kOutOfMemory);
    CHECK(scene.guest.complaints().size() == 2);  // and what the cache holds
    CHECK(scene.guest.code("unload m") == kSuccess);
    CHECK(scene.guest.code("alloc c " + bytes(150 * kMiB)) == kSuccess);
}

TEST_CASE("where the driver has less than the limit, what is idle makes room for what doesn't come from a cache") {
    // On 2002 MiB, of which a neighbour holds 800.
    const std::string kind = GENERATE("managed", "pitch", "async", "old", "piece", "array", "module");
    const std::string mode = GENERATE("growth", "prealloc");
    CAPTURE(kind, mode);
    Scene scene(kLaptop, cached(mode), "1900MiB");
    Guest neighbour(Guest::route("linked"), raw(kLaptop, scene.books.path()));
    use_device(neighbour);
    REQUIRE(neighbour.code("alloc a " + bytes(800 * kMiB)) == kSuccess);
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(500 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("free a") == kSuccess);
    const std::string what = kind == "piece"    ? "piece p " + bytes(400 * kMiB)
                             : kind == "array"  ? std::string("array p 5120 5120 0")
                             : kind == "module" ? "module p " + bytes(400 * kMiB)
                             : kind == "pitch"  ? "alloc p " + bytes(400 * kMiB / 512) + " pitch"
                                                : "alloc p " + bytes(400 * kMiB) + " " + kind;
    CHECK(scene.guest.code(what) == kSuccess);
    CHECK(scene.guest.code("alloc b " + bytes(100 * kMiB)) == kSuccess);
}

TEST_CASE("memory that doesn't come from a cache makes it give back what is idle") {
    const std::string kind = GENERATE("managed", "pitch", "async", "old");
    Scene scene(kLaptop, cached("growth"));
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(600 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("free a") == kSuccess);
    CAPTURE(kind);
    const std::string size = kind == "pitch" ? bytes(400 * kMiB / 512) : bytes(400 * kMiB);
    CHECK(scene.guest.code("alloc b " + size + " " + kind) == kSuccess);
    CHECK(scene.held().peak <= 1024 * kMiB);
}

TEST_CASE("a block that is freed in a stream's order goes back to the cache") {
    Scene scene(kLaptop, cached("growth"));
    enter_device(scene.guest);
    const uint64_t free = scene.free(), block = scene.guest.number("alloc a " + bytes(30 * kMiB));
    CHECK(scene.guest.code("freeasync a") == kSuccess);
    CHECK(scene.guest.code("freeasync a") == kInvalidValue);
    CHECK(scene.free() == free);
    CHECK(scene.guest.number("alloc b " + bytes(30 * kMiB)) == block);
}

TEST_CASE("NVML shows cached memory as free, as CUDA does") {
    Scene scene(kLaptop, cached("growth"));
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(300 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc b " + bytes(10 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("nvml") == kSuccess);
    const uint64_t used = scene.guest.number("nvmlmemory 0", 3);
    REQUIRE(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.number("nvmlmemory 0", 3) == used - 300 * kMiB);
    CHECK(scene.guest.number("nvmlmemory 0", 2) == scene.free());
}

TEST_CASE("wrong frees get the driver's answer, and the cache lives on") {
    Scene scene(kLaptop, cached("growth"));
    Guest plain_guest(Guest::route("linked"), raw(kLaptop, scene.books.path()));
    for (Guest* guest : {&scene.guest, &plain_guest}) {
        if (guest == &plain_guest)
            REQUIRE(guest->code("init") == kSuccess);
        enter_device(*guest);
        const uint64_t small = guest->number("alloc a 5000"), large = guest->number("alloc b " + bytes(5 * kMiB));
        CHECK(guest->code("freeat " + bytes(small + 512)) == kInvalidValue);
        CHECK(guest->code("freeat " + bytes(large + kMiB)) == kInvalidValue);
        CHECK(guest->code("freeat 0") == kSuccess);
        CHECK(guest->code("freeat 4096") == kInvalidValue);
        CHECK(guest->code("free a") == kSuccess);
        CHECK(guest->code("free a") == kInvalidValue);
        CHECK(guest->code("free b") == kSuccess);
        CHECK(guest->code("free b") == kInvalidValue);
        CHECK(guest->code("alloc c 0") == kInvalidValue);
    }
}

TEST_CASE("a block that is freed in stream order goes into the cache, and not to the driver") {
    const std::string free = GENERATE("strict", "deferred");
    Scene scene(kLaptop, cached("growth", {"CUSLICE_FREE=" + free}));
    enter_device(scene.guest);
    const uint64_t before = scene.free();
    REQUIRE(scene.guest.code("alloc a " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc b 1000") == kSuccess);
    const uint64_t held = scene.held().used;
    CHECK(scene.guest.code("freeasync a") == kSuccess);
    CHECK(scene.guest.code("freeasync b") == kSuccess);
    CHECK(scene.guest.code("freeasync a") == kInvalidValue);
    CHECK(scene.free() == before);
    CHECK(scene.held().used == held);
    CHECK(scene.guest.code("alloc c " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.held().used == held);
    // Stream-ordered and managed memory comes from the driver, not from a cache.
    REQUIRE(scene.guest.code("alloc d " + bytes(kMiB) + " async") == kSuccess);
    CHECK(scene.guest.code("freeasync d") == kSuccess);
    REQUIRE(scene.guest.code("alloc e " + bytes(kMiB) + " managed") == kSuccess);
    CHECK(scene.guest.code("free e") == kSuccess);
}

TEST_CASE("a context's end and a reset take its cache with them, and the next context has its own") {
    Scene scene(kLaptop, cached("growth"));
    enter_device(scene.guest);
    REQUIRE(scene.guest.code("alloc a " + bytes(300 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("reset 0") == kSuccess);
    CHECK(scene.held().used < 100 * kMiB);
    enter_device(scene.guest);
    CHECK(scene.guest.code("alloc b " + bytes(600 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("free b") == kSuccess);
    REQUIRE(scene.guest.code("create second 0") == kSuccess);
    CHECK(scene.guest.code("alloc c " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("destroy second") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.guest.code("alloc d " + bytes(600 * kMiB)) == kSuccess);
}

TEST_CASE("what was known of a block is forgotten at its context's end, and not believed of the next one there") {
    Scene scene(kLaptop, cached("growth"));
    enter_device(scene.guest);
    const uint64_t first = scene.guest.number("alloc a 1000"), id = scene.guest.number("bufferid a");
    CHECK(scene.guest.number("bufferid a") == id);
    REQUIRE(scene.guest.code("ipcget a") == kSuccess);
    REQUIRE(scene.guest.code("reset 0") == kSuccess);
    enter_device(scene.guest);
    // Not of the size that was exported, which would be the driver's.
    REQUIRE(scene.guest.number("alloc b 3000") == first);
    CHECK(scene.guest.number("bufferid b") != id);
    CHECK(scene.guest.code("free b") == kSuccess);
    CHECK(scene.guest.number("alloc c 3000") == first);  // nobody else has it
}

TEST_CASE("each GPU has a mode of its own") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced("2xt4", books.path(),
                                               {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=0=prealloc,1=growth",
                                                "CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
    REQUIRE(guest.code("init") == kSuccess);
    const auto used = [&](unsigned ordinal) {
        const std::string uuid = split_words(guest.ask("uuid " + std::to_string(ordinal))).at(1);
        return books_of(books.path(), guest.pid(), uuid).used;
    };
    for (unsigned i : {0, 1})
        REQUIRE(guest.code("retain " + std::to_string(i)) == kSuccess);
    CHECK(used(0) > 1900 * kMiB);
    CHECK(used(1) < 1000 * kMiB);
}

TEST_CASE("growth without a limit caches and counts, and limits nothing") {
    const Folder books;
    Guest guest(Guest::route("linked"), sliced(kLaptop, books.path(), {"CUSLICE_ALLOCATOR=growth"}));
    use_device(guest);
    const uint64_t free = guest.number("info");
    CHECK(guest.code("alloc a " + bytes(free - 4 * kMiB)) == kSuccess);
    CHECK(guest.code("free a") == kSuccess);
    CHECK(guest.number("info") == free);
}

TEST_CASE("a sleeping program gives idle memory back, and its neighbour gets it") {
    const std::string free = GENERATE("strict", "deferred"), idle = GENERATE("500ms", "1h");
    CAPTURE(free, idle);
    const Folder books;
    const Words settings{"CUSLICE_LIMIT=1500MiB", "CUSLICE_FREE=" + free, "CUSLICE_IDLE_RELEASE=" + idle};
    Guest first(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    use_device(first);
    REQUIRE(first.code("alloc a " + bytes(900 * kMiB)) == kSuccess);
    REQUIRE(first.code("alloc b 3000") == kSuccess);
    Guest second(Guest::route("linked"), raw(kLaptop, books.path()));
    use_device(second);
    const auto granted = [&] { return second.code("alloc a " + bytes(900 * kMiB)) == kSuccess; };
    CHECK_FALSE(granted());
    REQUIRE(first.code("free a") == kSuccess);
    REQUIRE(first.code("free b") == kSuccess);
    if (idle == "1h") {
        // Its thread has looked, and it was not idle for long enough.
        const auto then = naps_of_others(first.pid());
        CHECK(soon([&] { return napped_since(first.pid(), then, 3); }));
        CHECK_FALSE(granted());
        return;
    }
    // How long it takes is tests/bench/'s to say.
    CHECK(soon(granted));
    CHECK(first.number("info") < 600 * kMiB);
}

namespace {

// A refusal that has been waited for is of a hundred naps, any other of a few; between two such waits is a second.
constexpr uint64_t kWait = 50;
constexpr std::chrono::seconds kNotAgain{1};

// True if the guest gets memory that a neighbour has idle. The neighbour's thread has a fifth of a second to give it
// back, which may be too short on a busy machine; the guest must still have waited for it, and get it later.
bool granted_after_wait(Guest& guest, const std::string& line) {
    guest.let_change("free", "a neighbour gives back at the same time");
    const uint64_t before = naps(guest);
    if (guest.code(line) == kSuccess)
        return true;
    if (naps(guest) - before < kWait)
        return false;
    return soon([&] { return guest.code(line) == kSuccess; });
}

}  // namespace

TEST_CASE("what one program of a group has cached, another one gets before it is refused") {
    const Folder books, ledger;
    const Words settings{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1500MiB", "CUSLICE_DIR=" + ledger.path(),
                         "CUSLICE_IDLE_RELEASE=1h"};
    Guest first(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    Guest second(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    for (Guest* guest : {&first, &second})
        use_device(*guest);
    REQUIRE(first.code("alloc a " + bytes(600 * kMiB)) == kSuccess);
    CHECK(second.code("alloc a " + bytes(500 * kMiB)) == kOutOfMemory);
    REQUIRE(first.code("free a") == kSuccess);
    CHECK(granted_after_wait(second, "alloc a " + bytes(500 * kMiB)));
    CHECK(second.code("alloc b " + bytes(600 * kMiB) + " managed") == kOutOfMemory);
    CHECK(second.code("free a") == kSuccess);
    CHECK(granted_after_wait(first, "alloc b " + bytes(600 * kMiB) + " managed"));
}

TEST_CASE("what one program has cached, another one's context or module gets before it is refused") {
    const std::string sharing = GENERATE("job", "group"), known = GENERATE("", "the context's size is known, ");
    const std::string line = GENERATE("retain 0", "module m 524288000");
    const std::string release = GENERATE("1h", "");
    if (!known.empty() && line != "retain 0")
        return;
    CAPTURE(sharing, known, line, release);
    const Folder books, ledger;
    Words settings{"CUSLICE_DIR=" + ledger.path()};
    if (!release.empty())
        settings.push_back("CUSLICE_IDLE_RELEASE=" + release);
    if (sharing == "group")
        settings.insert(settings.end(), {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1500MiB"});
    else
        settings.insert(settings.end(), {"CUSLICE_JOB=shared", "CUSLICE_LIMIT=1500MiB"});
    const auto start = [&] { return sliced(kLaptop, books.path(), cached("growth", settings)); };
    if (!known.empty()) {
        Guest before(Guest::route("linked"), start());
        use_device(before);
    }
    Guest first(Guest::route("linked"), start());
    Guest second(Guest::route("linked"), start());
    use_device(first);
    REQUIRE(second.code("init") == kSuccess);
    if (line != "retain 0") {
        enter_device(second);
    }
    const uint64_t room = line == "retain 0" ? 1100 * kMiB : 800 * kMiB;
    REQUIRE(first.code("alloc a " + bytes(room)) == kSuccess);
    CHECK(second.code(line) == kOutOfMemory);
    REQUIRE(first.code("free a") == kSuccess);
    if (release.empty()) {
        // It waits, and nobody but itself can give back what it caches.
        CHECK(second.code(line) == kOutOfMemory);
        CHECK(first.number("info") >= room);
    } else {
        CHECK(granted_after_wait(second, line));
    }
}

TEST_CASE("a refusal names the sibling with a cache that holds most, and how it would give back what it does not use") {
    const std::string sharing = GENERATE("job", "group"), then = GENERATE("sleeps", "is stopped");
    CAPTURE(sharing, then);
    const Folder books, ledger;
    Words settings{"CUSLICE_DIR=" + ledger.path()};
    if (sharing == "group")
        settings.insert(settings.end(), {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1500MiB"});
    else
        settings.insert(settings.end(), {"CUSLICE_JOB=shared", "CUSLICE_LIMIT=1500MiB"});
    Guest first(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    Guest second(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    for (Guest* guest : {&first, &second})
        use_device(*guest);
    REQUIRE(first.code("alloc a " + bytes(600 * kMiB)) == kSuccess);
    const auto last_refusal = [&] {
        Words lines = second.complaints();
        while (!lines.empty() && lines.back().find("by other processes") == std::string::npos)
            lines.pop_back();
        return lines.empty() ? std::string() : lines.back();
    };
    REQUIRE(first.code("free a") == kSuccess);
    if (then == "is stopped")
        first.kill(SIGSTOP);
    REQUIRE(second.code("alloc b " + bytes(500 * kMiB)) == kOutOfMemory);
    const std::string line = last_refusal();
    CAPTURE(line);
    CHECK(line.find("900.0 MiB by other processes (see cuslice ps), of which 900.0 MiB by pid " +
                    std::to_string(first.child()) + " (guest_linked), which ") != std::string::npos);
    CHECK((line.find("which is stopped, and gives back what its cache doesn't need once it goes on (kill -CONT)") !=
           std::string::npos) == (then == "is stopped"));
    CHECK((line.find("which gives back what its cache doesn't need at its next allocation, or by itself with "
                     "--idle-release") != std::string::npos) == (then == "sleeps"));
    if (then == "is stopped")
        first.kill(SIGCONT);
    // As the line says.
    REQUIRE(first.code("alloc small 1000") == kSuccess);
    CHECK(soon([&] { return second.code("alloc b " + bytes(500 * kMiB)) == kSuccess; }));
}

TEST_CASE("a refusal waits for no program of the group that could not help, and for none in vain again") {
    const Folder books, ledger;
    const Words settings{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1500MiB", "CUSLICE_DIR=" + ledger.path(),
                         "CUSLICE_IDLE_RELEASE=1h"};
    Guest first(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    Guest second(Guest::route("linked"), sliced(kLaptop, books.path(), cached("growth", settings)));
    for (Guest* guest : {&first, &second})
        use_device(*guest);
    REQUIRE(first.code("alloc a " + bytes(600 * kMiB)) == kSuccess);
    // It naps as it waits for the next command: soon, on a machine with nothing else to do.
    REQUIRE(soon([&] { return naps(second) > 0; }));
    // How many of ten are waited for; and that no two are within the time for which a wait is not repeated.
    const auto waits = [&](uint64_t size) {
        unsigned count = 0;
        std::chrono::steady_clock::time_point last{};
        for (int i = 0; i < 10; i++) {
            const uint64_t before = naps(second);
            const auto asked = std::chrono::steady_clock::now();
            CHECK(second.code("alloc b " + bytes(size)) == kOutOfMemory);
            if (naps(second) - before < kWait)
                continue;
            if (count++)
                CHECK(std::chrono::steady_clock::now() - last > kNotAgain);
            last = asked;
        }
        return count;
    };
    // Nobody can make room for more than the limit, nor for what the others' contexts are in the way of.
    CHECK(waits(32 * kGiB) == 0);
    CHECK(waits(1400 * kMiB) == 0);
    // These 500 MiB the other could have in its cache. It hasn't, and after one wait that is known.
    CHECK(waits(500 * kMiB) > 0);
    REQUIRE(first.code("free a") == kSuccess);
    CHECK(granted_after_wait(second, "alloc b " + bytes(500 * kMiB)));
}

TEST_CASE("a block in the middle of a segment opens in another program at the same bytes") {
    const bool caches = GENERATE(false, true);
    Scene owner("1xt4", cached("growth"));
    enter_device(owner.guest);
    const uint64_t first = owner.guest.number("alloc first 5000"), second = owner.guest.number("alloc second 5000");
    REQUIRE(owner.guest.number("alloc late 5000"));
    REQUIRE(owner.guest.number("alloc large " + bytes(kMiB)));
    REQUIRE(first != second);
    REQUIRE(owner.guest.code("put second 1234567") == kSuccess);
    REQUIRE(owner.guest.code("put first 7654321") == kSuccess);
    REQUIRE(owner.guest.code("put large 42") == kSuccess);
    Guest other(Guest::route("linked"),
                sliced("1xt4", owner.books.path(),
                       {"CUSLICE_LIMIT=1GiB", caches ? "CUSLICE_ALLOCATOR=growth" : "CUSLICE_LOG=warn"}));
    use_device(other);
    for (const auto& [name, value] : {std::pair{"second", 1234567}, {"first", 7654321}, {"large", 42}}) {
        const std::string handle = split_words(owner.guest.ask(std::string("ipcget ") + name)).at(1);
        REQUIRE(other.code(std::string("ipcopen ") + name + " " + handle) == kSuccess);
        CHECK(other.number(std::string("look ") + name) == static_cast<uint64_t>(value));
    }
    CHECK(other.code("ipcclose large") == kSuccess);
    CHECK(other.number("look second") == 1234567);
    CHECK(other.code("ipcclose second") == kSuccess);
    CHECK(other.code("ipcclose first") == kSuccess);
    // An exported block may still be open in other processes, so it is not used again.
    CHECK(owner.guest.code("free second") == kSuccess);
    for (int i = 0; i < 50; ++i)
        CHECK(owner.guest.number("alloc again" + std::to_string(i) + " 5000") != second);
    // A program without cuslice can't open such a handle, and doesn't get other bytes instead.
    Guest plain_guest(Guest::route("linked"), raw("1xt4", owner.books.path()));
    use_device(plain_guest);
    const std::string late = split_words(owner.guest.ask("ipcget late")).at(1);
    CHECK(plain_guest.code("ipcopen late " + late) != kSuccess);
    // Its process has ended.
    owner.guest.kill(9);
    owner.guest.finish();
    CHECK(other.code("ipcopen late " + late) == kInvalidValue);
    CHECK(other.complaints().size() == 1);
}

TEST_CASE(
    "memory at addresses that the allocator has no map of is the driver's own, and counted, and one line says so") {
    const std::string allocator = GENERATE("growth", "prealloc");
    CAPTURE(allocator);
    Scene scene("1xt4", {"CUSLICE_ALLOCATOR=" + allocator, "CUSLICE_FAKE_ADDRESSES=high"});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t before = scene.free();
    CHECK(scene.guest.number("alloc small 1000") >= 1ull << 49);
    CHECK(scene.guest.number("alloc large " + bytes(100 * kMiB)) >= 1ull << 49);
    CHECK(scene.free() <= before - 100 * kMiB);
    CHECK(scene.guest.code("alloc more " + bytes(2 * kGiB)) == kOutOfMemory);
    CHECK(scene.guest.code("free small") == kSuccess);
    CHECK(scene.guest.code("free large") == kSuccess);
    CHECK(scene.free() == before);
    CHECK(scene.guest.finish() == 0);
    unsigned said = 0;
    for (const std::string& line : scene.guest.complaints())
        said += line.find("addresses from 2^49 on") != std::string::npos;
    CHECK(said == 1);
}

}  // namespace cuslice::tests
