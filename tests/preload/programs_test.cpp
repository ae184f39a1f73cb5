// SPDX-License-Identifier: Apache-2.0
// Every function that allocates, to the limit and back to nothing; and random programs of all of them. The count is
// held against the GPU's books, to the byte.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "fake/books/books.h"
#include "tests/preload/scene.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice::tests {
namespace {

// One kind of allocation: the guest's commands that take the nth and give it back.
struct Kind {
    std::string name;
    Words setup, take, give_back;
    uint64_t most;            // bytes that one of them takes at most
    bool afterwards = false;  // only the driver knows how many: refused when it has taken them
};

// Addresses below 4 GiB may run out before memory does.
constexpr uint64_t kFewAddresses = 500 * kMiB;

const Kind kKinds[] = {
    {"cuMemAlloc_v2", {}, {"alloc # 16000001"}, {"free #"}, 16 * kMiB},
    {"cuMemAlloc", {}, {"alloc # 16000001 old"}, {"freeold #"}, kFewAddresses},
    {"cuMemAllocPitch_v2", {}, {"pitch # 100000 160"}, {"free #"}, 16 * kMiB},
    {"cuMemAllocAsync", {}, {"alloc # 16000001 async"}, {"freeasync #", "sync"}, 32 * kMiB},
    {"cuMemAllocAsync_ptsz", {}, {"alloc # 16000001 ptsz"}, {"freeasync #", "sync"}, 32 * kMiB},
    {"cuMemAllocFromPoolAsync", {"pool mine 0"}, {"alloc # 16000001 pool=mine"}, {"free #", "sync"}, 32 * kMiB},
    {"cuMemAllocAsync of another pool",
     {"pool mine 0", "usepool mine"},
     {"alloc # 16000001 async"},
     {"free #", "sync"},
     32 * kMiB},
    {"cuMemAllocAsync that keeps",
     {"pool default 0", "keep default 100000000000"},
     {"alloc # 16000001 async"},
     {"freeasync #", "sync", "trim default 0"},
     32 * kMiB},
    {"cuMemCreate", {}, {"piece # 16777216"}, {"unpiece #"}, 16 * kMiB},
    {"cuMemCreate, mapped", {}, {"piece # 16777216", "map # 16777216", "unpiece #"}, {"unmap #"}, 16 * kMiB},
    {"cuMemCreate, exportable", {}, {"piece # 16777216 export", "export # close"}, {"unpiece #"}, 16 * kMiB},
    {"cuMemCreate, bound to a multicast object",
     {},
     {"piece # 16777216", "multicast m# 16777216", "bind m# 0 # 16777216", "unpiece #"},
     {"unbind m# 0 16777216", "unpiece m#"},
     16 * kMiB},
    {"cuMemCreate, bound by its address",
     {},
     {"piece # 16777216", "map # 16777216", "multicast m# 16777216", "bindat m# 0 # 16777216", "unpiece #", "unmap #"},
     {"unpiece m#"},
     16 * kMiB},
    {"cuMemAlloc_v2, exported", {}, {"alloc # 16000001", "ipcget #"}, {"free #"}, 16 * kMiB},
    {"cuArray3DCreate_v2", {}, {"array # 1000 100 10"}, {"unarray #"}, 16 * kMiB, true},
    {"cuMipmappedArrayCreate", {}, {"mipmap # 800 800 0 20"}, {"unmipmap #"}, 16 * kMiB, true},
    {"cuGraphLaunch",
     {},
     {"graph # 16000001 1 leave", "launch #"},
     {"graphfree #", "ungraph #", "graphtrim"},
     32 * kMiB},
    {"cuGraphLaunch of a capture",
     {},
     {"capture # 16000001 leave", "launch #"},
     {"graphfree #", "ungraph #", "graphtrim"},
     32 * kMiB},
    {"cuModuleLoadData", {}, {"module # 16000001"}, {"unload #"}, 24 * kMiB, true},
    {"cuGreenCtxCreate", {}, {"green # 0"}, {"ungreen #"}, 300 * kMiB, true},
    {"cuCtxCreate_v2", {}, {"create # 0"}, {"destroy #", "current 0"}, 300 * kMiB, true},
};

// The command for the nth of them.
std::string numbered(std::string command, unsigned number) {
    for (size_t at = 0; (at = command.find('#', at)) != std::string::npos;)
        command.replace(at, 1, "x" + std::to_string(number));
    return command;
}

// A small GPU that has everything: multicast objects need Hopper and NVLink.
struct Machine {
    explicit Machine(const std::string& more = "")
        : gpus(gpu_file(folder, "compute-capability = \"9.0\"\nnvlink = true\n" + more)) {}
    Folder folder;
    std::string gpus;
};

// The first CUresult that isn't success.
int all_of(Guest& guest, const Words& commands, unsigned number) {
    for (const std::string& command : commands)
        if (const int code = guest.code(numbered(command, number)))
            return code;
    return kSuccess;
}

// Takes until it is refused; with what, and how many there are.
int take_all(Guest& guest, const Kind& kind, unsigned* count) {
    for (*count = 0;; ++*count)
        if (const int code = all_of(guest, kind.take, *count))
            return code;
}

// Takes and gives back twice what there is of a kind.
void check_kind(const Kind& kind, const Machine& machine) {
    CAPTURE(kind.name);
    Scene scene(machine.gpus, {}, "1000MiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    unsigned count = 0;
    for (int round = 0; round < 2; round++) {
        REQUIRE(all_of(scene.guest, kind.setup, 0) == kSuccess);
        const int refused = take_all(scene.guest, kind, &count);
        const Held full = scene.held();
        CHECK(count > 0);
        CHECK(full.used <= 1000 * kMiB);
        CHECK(full.peak <= 1000 * kMiB + (kind.afterwards ? kind.most : 0));
        CHECK(full.used + kind.most + 16 * kMiB > 1000 * kMiB);
        const uint64_t taken = full.used - used;  // what is measured may go into the headroom
        CHECK(scene.free() == (taken < free ? free - taken : 0));
        for (unsigned i = 0; i < count; i++)
            REQUIRE(all_of(scene.guest, kind.give_back, i) == kSuccess);
        CHECK(scene.held().used == used);
        CHECK(scene.free() == free);

        // The same with no limit but the GPU's.
        if (round != 0)
            continue;
        const Folder books;
        Guest raw_guest(Guest::route("linked"), raw(machine.gpus, books.path()));
        retain_device(raw_guest);
        REQUIRE(all_of(raw_guest, kind.setup, 0) == kSuccess);
        CHECK(take_all(raw_guest, kind, &count) == refused);
    }
}

// Lines of a machine's file: a libcuda of the newest version that a listed function needs, if that is newer than the
// usual one.
std::string newest_driver() {
    constexpr int kUsual = 13000;
    int newest = kUsual;
    for (const FunctionRow& row : kFunctionRows)
        newest = std::max(newest, row.version);
    if (newest == kUsual)
        return "";
    return "[driver]\ncuda = \"" + std::to_string(newest / 1000) + "." + std::to_string(newest % 1000 / 10) + "\"";
}

// The rows of kWays in guest/memory.cpp, or their calls that the driver refuses.
Words ways_on(const Machine& machine, bool refused) {
    Words ways;
    for (const std::string& way : split_words(Scene(machine.gpus, {}).guest.ask("ways")))
        if (way.starts_with("refused-") == refused)
            ways.push_back(way);
    return ways;
}

TEST_CASE("each kind of allocation can be had to the limit, fails there as the driver fails, and leaves no trace") {
    const size_t which = GENERATE(range(size_t{0}, sizeof kKinds / sizeof kKinds[0]));
    check_kind(kKinds[which], Machine());
}

TEST_CASE("so can what each function gives that takes a size, and whose memory cuMemFree frees") {
    const Machine machine(newest_driver());
    unsigned count = 0;
    for (const std::string& way : ways_on(machine, false)) {
        check_kind({way, {}, {"alloc # 16000001 " + way}, {"free #"}, 16 * kMiB}, machine);
        count++;
    }
    CHECK(count > 0);
}

TEST_CASE("what the driver refuses each of these functions for another argument is refused, and leaves no trace") {
    const Machine machine(newest_driver());
    Scene scene(machine.gpus, {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    unsigned count = 0;
    for (const std::string& way : ways_on(machine, true)) {
        CAPTURE(way);
        CHECK(scene.guest.code("alloc a 1048576 " + way) == kInvalidValue);
        CHECK(scene.held().used == used);
        CHECK(scene.free() == free);
        count++;
    }
    CHECK(count > 0);
    CHECK(scene.guest.complaints().empty());
}

TEST_CASE("a pool with a largest size ends there, as the driver says and without a line of ours") {
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("pool small 0 " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("alloc a " + bytes(60 * kMiB) + " pool=small") == kSuccess);
    CHECK(scene.guest.code("alloc b " + bytes(60 * kMiB) + " pool=small") == kOutOfMemory);
    CHECK(scene.guest.complaints().empty());
    CHECK(scene.held().used == used + 60 * kMiB);
    CHECK(scene.free() == free - 60 * kMiB);
    CHECK(scene.guest.code("alloc b " + bytes(40 * kMiB) + " pool=small") == kSuccess);
    CHECK(scene.free() == free - 100 * kMiB);
    // A pool that is destroyed goes with its last allocation.
    CHECK(scene.guest.code("unpool small") == kSuccess);
    CHECK(scene.held().used == used + 100 * kMiB);
    CHECK(scene.free() == free - 100 * kMiB);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.code("free b") == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("no bytes in a stream's order are a null pointer, also where nothing is left, and cost nothing") {
    const Words settings = GENERATE(Words{}, Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_SPLIT=2"});
    CAPTURE(settings.empty() ? "" : settings.front());
    Scene scene("1xlaptop-2g", settings, "500MiB");
    Guest& guest = scene.guest;
    REQUIRE(guest.code("retain 0") == kSuccess);
    REQUIRE(guest.code("pool mine 0") == kSuccess);
    REQUIRE(guest.code("alloc most " + bytes(scene.free())) == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    for (const char* how : {"async", "ptsz", "pool=mine"}) {
        CAPTURE(how);
        CHECK(guest.ask("alloc none 0 " + std::string(how)) == "0 0");
        CHECK(guest.code("freeasync none") == kSuccess);
        CHECK(scene.free() == free);
    }
    CHECK(guest.code("capture g 0 leave") == kSuccess);
    CHECK(guest.code("launch g") == kSuccess);
    CHECK(guest.code("alloc none 0") == kInvalidValue);
    CHECK(scene.free() == free);
    CHECK(scene.held().used == used);
    CHECK(guest.complaints().empty());
}

TEST_CASE("no bytes in a stream's order aren't refused where a context that no hook saw is past the limit") {
    Scene scene("1xlaptop-2g", {}, "200MiB");
    Guest& guest = scene.guest;
    REQUIRE(guest.code("hidden 0") == kSuccess);
    REQUIRE(guest.code("pool mine 0") == kSuccess);
    for (const char* how : {"async", "ptsz", "pool=mine"}) {
        CAPTURE(how);
        CHECK(guest.code("alloc some 512 " + std::string(how)) == kOutOfMemory);
        CHECK(guest.ask("alloc none 0 " + std::string(how)) == "0 0");
        CHECK(guest.code("freeasync none") == kSuccess);
    }
}

TEST_CASE("memory that is bound to a sparse array is counted until it is unbound or the array is gone") {
    const std::string end = GENERATE("tiles s 512 512", "unarray s");
    CAPTURE(end);
    Scene scene("1xlaptop-2g", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("sparse s 4096 4096 0") == kSuccess);
    CHECK(scene.free() == free);
    REQUIRE(scene.guest.code("piece p " + bytes(100 * kMiB) + " tiles") == kSuccess);
    REQUIRE(scene.guest.code("tiles s 512 512 p") == kSuccess);
    CHECK(scene.free() == free - 100 * kMiB);
    CHECK(scene.guest.code("unpiece p") == kSuccess);
    CHECK(scene.held().used == used + 100 * kMiB);
    CHECK(scene.free() == free - 100 * kMiB);
    scene.fill_and_free();
    CHECK(scene.guest.code(end) == kSuccess);
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("memory that is bound to a multicast object is counted until it is unbound or the object is gone") {
    const Words end = GENERATE(Words{"unbind m 0 104857600", "unpiece m"}, Words{"unpiece m"},
                               Words{"map m 209715200", "unpiece m", "unmap m"});
    CAPTURE(end);
    const Machine machine;
    Scene scene(machine.gpus, {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free(), used = scene.held().used;
    REQUIRE(scene.guest.code("multicast m " + bytes(200 * kMiB)) == kSuccess);
    CHECK(scene.free() == free);
    REQUIRE(scene.guest.code("piece p " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("bind m 0 p " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("bind m 0 p " + bytes(100 * kMiB)) != kSuccess);  // something is there
    CHECK(scene.guest.code("unbind m 0 " + bytes(2 * kMiB)) != kSuccess);    // that isn't what was bound
    CHECK(scene.free() == free - 100 * kMiB);
    CHECK(scene.guest.code("unpiece p") == kSuccess);
    CHECK(scene.held().used == used + 100 * kMiB);
    CHECK(scene.free() == free - 100 * kMiB);
    scene.fill_and_free();
    for (const std::string& command : end) {
        CHECK(scene.held().used == used + 100 * kMiB);
        CHECK(scene.guest.code(command) == kSuccess);
        if (command.starts_with("unbind"))
            break;
    }
    CHECK(scene.held().used == used);
    CHECK(scene.free() == free);
}

TEST_CASE("each GPU of a multicast object's team pays for what is bound of its own") {
    const Folder folder;
    const std::string keys = "count = 2\ncompute-capability = \"9.0\"\nnvlink = true";
    Scene scene(gpu_file(folder, keys), {});
    REQUIRE(scene.guest.code("retain 1") == kSuccess);
    const uint64_t free_1 = scene.free();
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free_0 = scene.free();
    REQUIRE(scene.guest.code("multicast m " + bytes(20 * kMiB) + " 2") == kSuccess);
    REQUIRE(scene.guest.code("piece p " + bytes(20 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("bind m 0 p " + bytes(20 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("unpiece p") == kSuccess);
    CHECK(scene.free() == free_0 - 20 * kMiB);
    REQUIRE(scene.guest.code("unpiece m") == kSuccess);
    CHECK(scene.free() == free_0);
    REQUIRE(scene.guest.code("current 1") == kSuccess);
    CHECK(scene.free() == free_1);
}

// One GPU's books, read again and again.
class Reader {
  public:
    explicit Reader(const std::string& folder) {
        std::string error;
        for (const auto& file : std::filesystem::directory_iterator(folder))
            if (books_.open_existing(file.path().string(), error))
                return;
        FAIL("no books in " << folder);
    }
    fake::Holder of(int pid) {
        for (const fake::Holder& holder : books_.holders())
            if (holder.pid == pid)
                return holder;
        return {};
    }

  private:
    fake::Books books_;
};

unsigned from_environment(const char* name, unsigned otherwise) {
    const char* text = std::getenv(name);
    return text ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

// CUSLICE_TEST_PROGRAMS=1000 CUSLICE_TEST_CALLS=10000 is the full size.
TEST_CASE("random programs of mixed calls agree with the books, byte for byte") {
    const unsigned programs = from_environment("CUSLICE_TEST_PROGRAMS", 40);
    const unsigned calls = from_environment("CUSLICE_TEST_CALLS", 1000), at_once = 50;
    constexpr unsigned in_a_process = 20;
    const Machine machine("context = \"30MiB\"");
    for (unsigned first = 0; first < programs; first += in_a_process) {
        Scene scene(machine.gpus, {});
        REQUIRE(scene.guest.code("retain 0") == kSuccess);
        scene.guest.let_change("free", "before a refusal pools give back what they keep for later");
        const uint64_t free = scene.free(), used = scene.held().used;
        Reader books(scene.books.path());
        for (unsigned seed = first; seed < programs && seed < first + in_a_process; seed++) {
            // Managed memory leaves a range for what arrays and modules take, until it is gone.
            REQUIRE(scene.guest.code("random " + std::to_string(seed) + (seed % 2 ? " managed" : " arrays")) ==
                    kSuccess);
            for (unsigned done = 0; done < calls; done += at_once) {
                REQUIRE(scene.guest.code("steps " + std::to_string(at_once)) == kSuccess);
                const uint64_t now = scene.free();
                INFO("seed " << seed << ", after " << done + at_once << " calls");
                // An array is measured when it is there, and may go into the headroom.
                const uint64_t taken = books.of(scene.guest.pid()).used - used;
                REQUIRE(now == (taken < free ? free - taken : 0));
                REQUIRE(taken + used <= kGiB);
            }
            REQUIRE(scene.guest.code("finish") == kSuccess);
            INFO("seed " << seed << ", at its end");
            REQUIRE(books.of(scene.guest.pid()).used == used);
            REQUIRE(scene.free() == free);
        }
        CHECK(scene.held().peak <= kGiB + 32 * kMiB);  // the largest array, or a green context
    }
}

}  // namespace
}  // namespace cuslice::tests
