// SPDX-License-Identifier: Apache-2.0
// Drivers of other versions, and NVML that tells less: the limit holds by the books of the GPU, which know nothing of
// cuslice and nothing of NVML.
#include <sched.h>
#include <unistd.h>

#include <cstdio>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/preload/lookups.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

// A machine of one small GPU whose driver has these keys.
std::string machine(const Folder& folder, const std::string& driver_keys) {
    return folder.write("machine.toml", "[driver]\n" + driver_keys + "\n[[gpu]]\nprofile = \"laptop-2g\"\n");
}

Words allocator_settings(const std::string& allocator) {
    if (allocator == "direct")
        return {};
    if (allocator == "prealloc")
        return {"CUSLICE_ALLOCATOR=prealloc"};
    return {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + allocator};
}

// Checks that a program never holds more than the limit, whatever it allocates and frees, and can hold nearly all of
// it.
void limit_holds(const std::string& fake, const Words& settings) {
    Scene scene(fake, settings);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    for (int round = 0; round < 3; ++round) {
        REQUIRE(scene.guest.code("alloc a " + bytes(96 * kMiB)) == kSuccess);
        REQUIRE(scene.guest.code("alloc b " + bytes(32 * kMiB)) == kSuccess);
        CHECK(scene.guest.code("freeall") == kSuccess);
    }
    scene.fill_and_free();
    CHECK(scene.held().peak > kGiB - 128 * kMiB);
    CHECK(scene.guest.finish() == 0);
}

// A guest in a pid namespace of its own, as in a container, whose own pid stands in NVML's list for another process.
struct Container {
    static Words command(const Words& program) {
        Words words{"/usr/bin/unshare", ::geteuid() == 0 ? "-pf" : "-rpf", "--mount-proc", "--kill-child"};
        words.insert(words.end(), program.begin(), program.end());
        return words;
    }
    static bool possible() { return can_unshare(CLONE_NEWPID | CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)); }
    Container()
        : other(Guest::route("linked"), raw(files.path() + "/machine.toml", books.path())),
          guest(command(Guest::route("linked")),
                sliced(files.path() + "/machine.toml", books.path(), Scene::with({}, "1024MiB"))) {
        // Neither has asked for anything: the machine is read at the first call.
        machine(files, "version = \"535.183.06\"\nprocess-id-offset = " + std::to_string(guest.pid() - other.pid()));
        REQUIRE(guest.pid() == 1);
        REQUIRE(other.code("init") == kSuccess);
        REQUIRE(guest.code("init") == kSuccess);
    }
    Folder files, books;
    Guest other, guest;
};

}  // namespace

TEST_CASE("an older driver lacks the newer functions, and look-ups are its own") {
    const Folder files, books;
    const auto [version, newest] =
        GENERATE(std::pair{"465.31", 11030}, std::pair{"470.256.02", 11040}, std::pair{"535.183.06", 12020});
    CAPTURE(version);
    const std::string fake = machine(files, std::string("version = \"") + version + "\"");
    const std::vector<LookUp> look_ups = of_typedefs();
    const auto expected = ask(look_ups, raw(fake, books.path()));
    const auto answers = ask(look_ups, sliced(fake, books.path(), {"CUSLICE_LIMIT=1GiB"}));
    const std::set<std::string> hooked = hooked_symbols();
    unsigned found = 0, missing = 0;
    for (size_t i = 0; i < look_ups.size(); ++i) {
        const Answer &theirs = expected[i], &ours = answers[i];
        CAPTURE(look_ups[i].text(), theirs.v1_pointer.symbol);
        CHECK(ours.v1 == theirs.v1);
        const bool hook = hooked.count(theirs.v1_pointer.symbol) != 0;
        CHECK((ours.v1_pointer == theirs.v1_pointer) == !hook);
        found += theirs.v1 == 0;
        missing += theirs.v1 == 500;
        if (newest >= 12000) {
            CHECK(ours.v2 == theirs.v2);
            CHECK(ours.status == theirs.status);
        }
        if (look_ups[i].name == "cuCtxRecordEvent")
            CHECK(theirs.v1 == 500);
    }
    CHECK(found > 500);
    CHECK(missing > 100);
}

TEST_CASE("on a driver before 11.3, which has no look-up of its own, ours finds what it exports") {
    const Folder files, books;
    const std::string version = GENERATE("450.248.02", "460.106.00");
    CAPTURE(version);
    // A driver of 11.3 answers the same for the forms that 11.0 has.
    std::vector<LookUp> look_ups = of_typedefs();
    std::erase_if(look_ups, [](const LookUp& one) { return one.version > 11000; });
    look_ups.push_back({"cuInit", 2000, 4});  // no such flag
    const auto expected = ask(look_ups, raw(machine(files, "version = \"465.31\""), books.path()));
    const auto answers =
        ask(look_ups, sliced(machine(files, "version = \"" + version + "\""), books.path(), {"CUSLICE_LIMIT=1GiB"}));
    unsigned found = 0;
    for (size_t i = 0; i < look_ups.size(); ++i) {
        CAPTURE(look_ups[i].text());
        CHECK(answers[i].v1 == expected[i].v1);
        CHECK(answers[i].v1_pointer.symbol == expected[i].v1_pointer.symbol);
        found += answers[i].v1 == 0;
    }
    CHECK(found > 300);
}

TEST_CASE("the limit holds on older and newer drivers, whatever their allocator") {
    const Folder files;
    const std::string version = GENERATE("450.248.02", "470.256.02", "535.183.06", "550.163.01", "590.44.01");
    const std::string allocator = GENERATE("direct", "strict", "deferred", "prealloc");
    CAPTURE(version, allocator);
    limit_holds(machine(files, "version = \"" + version + "\""), allocator_settings(allocator));
}

TEST_CASE("a program on the runtime of CUDA 11 stays in its slice on drivers of its age") {
    const Folder files, books;
    const std::string version = GENERATE("450.248.02", "465.31", "470.256.02");
    CAPTURE(version);
    Guest guest({kGuests + "/guest_runtime11"}, sliced(machine(files, "version = \"" + version + "\""), books.path(),
                                                       {"CUSLICE_LIMIT=1GiB", "LD_LIBRARY_PATH=" + kFakeFolder}));
    CHECK(guest.code("fill") == kOutOfMemory);
    const Held held = books_of(books.path(), guest.pid());
    CHECK(held.peak <= kGiB);
    CHECK(held.peak > kGiB - 128 * kMiB);
}

TEST_CASE("the limit holds whatever NVML tells of processes") {
    const Folder files;
    const std::string keys = GENERATE("process-list = \"empty\"", "process-list = \"unsupported\"",
                                      "process-memory = false", "version = \"535.183.06\"\nprocess-id-offset = 5000000",
                                      "version = \"470.256.02\"\nprocess-list = \"empty\"");
    const std::string allocator = GENERATE("direct", "deferred");
    CAPTURE(keys, allocator);
    limit_holds(machine(files, keys), allocator_settings(allocator));
}

TEST_CASE("before driver 545 a container's process is not charged for what NVML lists under its own pid") {
    if (!Container::possible())
        return;
    Container container;
    auto& [files, books, other, guest] = container;
    REQUIRE(other.code("retain 0") == kSuccess);
    REQUIRE(other.code("alloc most " + bytes(500 * kMiB)) == kSuccess);
    REQUIRE(guest.code("retain 0") == kSuccess);
    CHECK(guest.number("info") == kGiB - 16 * kMiB - books_of(books.path(), 1).used);
    CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(books_of(books.path(), 1).peak <= kGiB);
}

TEST_CASE("before driver 545 another's memory may come to stand under a container's pid at any time") {
    if (!Container::possible())
        return;
    Container container;
    auto& [files, books, other, guest] = container;
    const bool late = GENERATE(false, true);
    if (late)
        REQUIRE(guest.code("retain 0") == kSuccess);
    REQUIRE(other.code("retain 0") == kSuccess);
    if (!late)
        REQUIRE(guest.code("retain 0") == kSuccess);
    // The other's figure is smaller than what this one holds, and says nothing of it.
    CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(books_of(books.path(), 1).peak <= kGiB);
}

TEST_CASE("NVML's figures are CUDA's bytes, also on drivers whose NVML doesn't tell what the driver keeps") {
    const Folder files, books;
    const std::string version = GENERATE("470.256.02", "535.183.06");
    CAPTURE(version);
    const std::string fake =
        files.write("t4.toml", "[driver]\nversion = \"" + version + "\"\n[[gpu]]\nprofile = \"t4\"\n");
    Guest outside(Guest::route("linked"), raw(fake, books.path()));
    retain_device(outside);
    REQUIRE(outside.code("alloc x " + bytes(500 * kMiB)) == kSuccess);
    REQUIRE(outside.code("nvml") == kSuccess);
    const uint64_t held = books_of(books.path(), outside.pid()).used;
    const uint64_t total = outside.number("total 0");
    CHECK((outside.number("nvmlmemory 0", 1) == total) == (version[0] == '4'));
    // Exactly the remaining memory can be reserved.
    const uint64_t left = total - held;
    const auto launch = [&](uint64_t size) {
        return run({CUSLICE_TEST_LAUNCH, "run", "--fake", fake, "--limit", std::to_string(size / 1024) + "KiB", "--",
                    "/bin/true"},
                   plain({"CUSLICE_FAKE_DIR=" + books.path()}));
    };
    CHECK(launch(left).exit_code == 0);
    CHECK(launch(left + 1024).exit_code == 75);
}

}  // namespace cuslice::tests
