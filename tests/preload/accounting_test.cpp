// SPDX-License-Identifier: Apache-2.0
// Memory that the driver takes by itself, measured in both ways: by NVML's figure of the process or, where NVML
// doesn't list it, by the steps of the GPU's use. After everything is freed, the whole slice can be allocated again.
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

/// A GPU on which NVML lists processes, or lists none, as in a container with pids of its own.
std::string listing(const Folder& folder, const std::string& list, const std::string& keys = "") {
    return folder.write("gpus.toml",
                        "[driver]\nprocess-list = \"" + list + "\"\n[[gpu]]\nprofile = \"laptop-2g\"\n" + keys + "\n");
}

TEST_CASE("what was made and ended is given back, however often, whether NVML lists the process or not") {
    const std::string list = GENERATE("listed", "empty", "unsupported");
    const auto how = GENERATE(Words{"array a 1024 1024 0", "unarray a"}, Words{"mipmap a 1024 1024 0 3", "unmipmap a"},
                              Words{"module a 16777216", "unload a"}, Words{"create a 0", "destroy a", "current 0"},
                              Words{"alloc a 16777216", "ipcget a", "free a"},
                              Words{"piece a 16777216 export", "export a close", "unpiece a"},
                              Words{"pool a 0", "alloc b 16777216 pool=a", "unpool a", "freeasync b", "sync"});
    CAPTURE(list, how[0]);
    const Folder files;
    Scene scene(listing(files, list), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    CHECK(free == kGiB - 16 * kMiB - used);
    for (int round = 0; round < 80; round++) {
        CAPTURE(round);
        for (const std::string& step : how)
            REQUIRE(scene.guest.code(step) == kSuccess);
    }
    REQUIRE(scene.held().used == used);
    CHECK(scene.free() == free);
    CHECK(scene.guest.code("alloc all " + bytes(free)) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("arrays and modules are counted to the byte while they are there, whether NVML lists the process or not") {
    const std::string list = GENERATE("listed", "empty");
    CAPTURE(list);
    const Folder files;
    Scene scene(listing(files, list), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const auto exact = [&] { return scene.free() == kGiB - 16 * kMiB - scene.held().used; };
    for (const char* step : {"array a 1000 1000 0", "mipmap b 777 500 3 4", "module c 1000001", "array d 3 3 3",
                             "unarray a", "alloc e 1000000", "unmipmap b", "create own 0", "array f 100 100 0",
                             "alloc g 5000", "current 0", "destroy own", "unload c", "unarray d", "free e"}) {
        CAPTURE(step);
        REQUIRE(scene.guest.code(step) == kSuccess);
        CHECK(exact());
    }
    CHECK(scene.held().used == 300 * kMiB);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("a thread's modules are counted right while another thread allocates, where NVML doesn't list the process") {
    const Folder files;
    Scene scene(listing(files, "empty"), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    for (int round = 0; round < 5; round++) {
        REQUIRE(scene.guest.ask("mix 200 " + bytes(64 * kMiB)) == "0 0");
        REQUIRE(scene.held().used == used);
        CHECK(scene.free() == free);
    }
    CHECK(scene.guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.held().used + 2 * kMiB + 16 * kMiB > kGiB);
}

TEST_CASE("contexts of several threads are counted right, where NVML doesn't list the process") {
    const std::string allocator = GENERATE("direct", "growth");
    CAPTURE(allocator);
    const Folder files;
    Scene scene(files.write("gpus.toml", "[driver]\nprocess-list = \"empty\"\n[[gpu]]\nprofile = \"t4\"\n"),
                {"CUSLICE_ALLOCATOR=" + allocator}, "4096MiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    for (int round = 0; round < 5; round++) {
        REQUIRE(scene.guest.ask("lifetimes 4 20 1") == "0 0");
        REQUIRE(scene.held().used == used);
        CHECK(scene.free() == free);
    }
}

TEST_CASE("a module is given back to its own GPU, whatever context is current at its end") {
    const std::string list = GENERATE("listed", "empty");
    const std::string current = GENERATE("retain 1", "current none");
    const bool split = GENERATE(false, true);  // then the other one is a part of the same GPU
    CAPTURE(list, current, split);
    const Folder files;
    Scene scene(listing(files, list, "count = 2"), split ? Words{"CUSLICE_SPLIT=0=2"} : Words{});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(scene.guest.code("module m " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.free() == free - (split ? 52 : 104) * kMiB);  // each part is charged its share
    REQUIRE(scene.guest.code(current) == kSuccess);
    REQUIRE(scene.guest.code("unload m") == kSuccess);
    if (current == "retain 1" && !split)
        CHECK(scene.guest.number("info") == free);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.free() == free);
}

TEST_CASE("a pool that ends with its GPU's last context is no longer charged") {
    const std::string list = GENERATE("listed", "empty");
    CAPTURE(list);
    const Folder files;
    Scene scene(listing(files, list), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("pool p 0") == kSuccess);
    REQUIRE(scene.guest.code("keep p " + bytes(~0ull)) == kSuccess);
    REQUIRE(scene.guest.code("alloc a " + bytes(600 * kMiB) + " pool=p") == kSuccess);
    REQUIRE(scene.guest.code("freeasync a") == kSuccess);
    REQUIRE(scene.guest.code("sync") == kSuccess);
    REQUIRE(scene.guest.code("release 0") == kSuccess);
    REQUIRE(scene.held().used == 0);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.held().used == used);
    CHECK(scene.free() == free);
    CHECK(scene.guest.code("alloc all " + bytes(free)) == kSuccess);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("what the driver loads lazily is seen, however much was in use before and freed") {
    const std::string allocator = GENERATE("direct", "growth");
    const Words before = GENERATE(Words{}, Words{"fill 10485760", "freeall"}, Words{"array a 100000 100000 10"},
                                  Words{"alloc a 524288000", "free a"});
    // One segment of which a part is in use can't be given back.
    if (allocator == "growth" && before == Words{"alloc a 524288000", "free a"})
        return;
    CAPTURE(allocator, before.empty() ? "" : before[0]);
    const Folder files;
    Scene scene(listing(files, "listed", "lazy-load = \"32MiB\""),
                // A refusal may be the first to see the last launch's memory.
                {"CUSLICE_ALLOCATOR=" + allocator, "GUEST_LETS_FREE_CHANGE=1"});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    for (const std::string& step : before)
        scene.guest.code(step);
    const bool fits = scene.guest.code("kernels m 10") == kSuccess;  // 320 MiB that nobody asks for
    REQUIRE(fits);
    const std::string block = GENERATE("10485760", "400000000");
    CAPTURE(block);
    scene.guest.code("fill " + block);
    // Idle memory in a cache counts towards the limit, so the cache has given it back.
    CHECK(scene.held().used <= kGiB);
    CHECK(scene.held().used + 420 * kMiB > kGiB);
}

TEST_CASE("what can't fit is refused before the driver has it, and takes no neighbour's place for a moment") {
    const std::string list = GENERATE("listed", "empty");
    CAPTURE(list);
    const Folder files;
    Scene scene(listing(files, list), {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("alloc a 512") == kSuccess);
    for (const char* large :
         {"array a 8192 8192 0", "array a 512 512 256", "mipmap a 8192 8192 0 3", "module a 1073741824"}) {
        CAPTURE(large);
        CHECK(scene.guest.code(large) == kOutOfMemory);
        CHECK(scene.held().peak == used + 512);
    }
    REQUIRE(scene.guest.code("free a") == kSuccess);
    CHECK(scene.free() == free);
    const Words said = scene.guest.complaints();
    REQUIRE(said.size() == 3);  // the two arrays are of one size
    // The figures are those of what is there.
    CHECK(said[0].find(" tried to allocate 1024.0 MiB; ") != std::string::npos);
    for (const std::string& line : said)
        CHECK(line.find("; 300.0 MiB of the 1024.0 MiB limit are in use (contexts and modules 300.0 MiB") !=
              std::string::npos);
    // An array of all the free memory fits: only the headroom is kept back.
    CHECK(scene.guest.code("array a " + bytes(free / 16 / 1024) + " 1024 0") == kSuccess);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("a heap for kernels that can't fit is refused, and the one before stays") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const std::string before = scene.guest.ask("heap");
    CHECK(scene.guest.code("heap " + bytes(2 * kGiB)) == kOutOfMemory);
    CHECK(scene.guest.ask("heap") == before);
    CHECK(scene.guest.ask("heap " + bytes(64 * kMiB)) == "0 " + bytes(64 * kMiB));
    CHECK(scene.free() == kGiB - 16 * kMiB - scene.held().used);
}

// An H200's driver takes it at once, for each thread that can be resident: 132 multiprocessors with 2048 each.
TEST_CASE("stacks that don't fit are refused before the driver takes them, and smaller ones are counted") {
    Scene scene("1xh200", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const Held before = scene.held();
    const uint64_t free = scene.free();
    for (const std::string size : {"4096", "524288", "18446744073709551615"}) {
        CAPTURE(size);
        CHECK(scene.guest.ask("threadstack " + size) == "2 1024");
        CHECK(scene.held().peak == before.peak);
        CHECK(scene.free() == free);
    }
    CHECK(scene.guest.ask("threadstack 2048") == "0 2048");
    CHECK(scene.held().used == before.used + 264 * kMiB);
    CHECK(scene.free() == free - 264 * kMiB);
    CHECK(scene.guest.ask("threadstack 1024") == "0 1024");
    CHECK(scene.held().used == before.used);
    CHECK(scene.free() == free);
}

// In some containers: then nothing shows what an H200's driver rounds up to its chunks of 2 MiB.
TEST_CASE("what the driver rounds up stays within the limit, also where NVML doesn't list the process") {
    const std::string list = GENERATE("listed", "empty", "unsupported"), allocator = GENERATE("direct", "growth");
    const std::string pitch = GENERATE("", " pitch");
    const uint64_t size = GENERATE(600'000, 1'100'000, 2'200'000, 4'300'000);
    CAPTURE(list, allocator, pitch, size);
    const Folder files;
    Scene scene(files.write("gpus.toml", "[driver]\nprocess-list = \"" + list + "\"\n[[gpu]]\nprofile = \"h200\"\n"),
                {"CUSLICE_ALLOCATOR=" + allocator});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    scene.guest.let_change("free", "what was rounded up is found when a refusal looks again");
    const uint64_t before = scene.held().used;
    CHECK(scene.guest.code("fill " + bytes(pitch.empty() ? size : size / 512) + pitch) == kOutOfMemory);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.held().used > kGiB - 64 * kMiB);
    CHECK(scene.guest.code("freeall") == kSuccess);
    if (allocator == "direct")
        CHECK(scene.held().used == before);
}

TEST_CASE("a program that NVML can no longer look at keeps its context's charge") {
    const std::string allocator = GENERATE("direct", "growth");
    CAPTURE(allocator);
    Scene scene("1xlaptop-2g", {"CUSLICE_ALLOCATOR=" + allocator});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(scene.guest.code("nofiles") == 0);
    for (int round = 0; round < 2; round++) {
        CHECK(scene.guest.code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
        CHECK(scene.guest.code("alloc more " + bytes(4 * kGiB)) == kOutOfMemory);
        CHECK(scene.guest.code("freeall") == kSuccess);
    }
    CHECK(scene.free() == free);
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("NVML says at once that an array is gone") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("nvml") == kSuccess);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const std::string before = scene.guest.ask("nvmlmemory 0");
    REQUIRE(scene.guest.code("array a 1024 1024 2") == kSuccess);
    CHECK(scene.guest.number("nvmlmemory2 0", 3) == 332 * kMiB);
    REQUIRE(scene.guest.code("unarray a") == kSuccess);
    CHECK(scene.guest.ask("nvmlmemory 0") == before);
}

TEST_CASE("a slice has the same total for NVML as for CUDA, before CUDA starts and after") {
    const Words setting = GENERATE(Words{"CUSLICE_FRACTION=0.25"}, Words{"CUSLICE_SPLIT=4"},
                                   Words{"CUSLICE_SPLIT=4", "CUSLICE_FRACTION=0.5"});
    const std::string gpu = GENERATE("1xh200", "1xa100-40g");
    CAPTURE(setting[0], gpu);
    const Folder books;
    Guest guest(Guest::route("linked"), sliced(gpu, books.path(), setting));
    REQUIRE(guest.code("nvml") == kSuccess);
    const uint64_t before = guest.number("nvmlmemory 0"), newer = guest.number("nvmlmemory2 0");
    CHECK(before == newer);
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.number("nvmlmemory 0") == before);
    CHECK(guest.number("nvmlmemory2 0") == before);
    CHECK(guest.number("total 0") == before);
    REQUIRE(guest.code("retain 0") == kSuccess);
    CHECK(guest.number("info", 2) == before);
    CHECK(guest.number("nvmlmemory 0") == before);
}

}  // namespace
}  // namespace cuslice::tests
