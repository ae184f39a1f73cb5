// SPDX-License-Identifier: Apache-2.0
// Memory that is cached, and streams that are captured into graphs: when a capture is over, what is not done while one
// goes on, and that whatever the driver refuses meanwhile is not lost.
#include <iterator>

#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

Words growth(const std::string& free = "strict", const Words& more = {}) {
    Words words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// Allocates twice the slice in total, which fits only if freed memory is used again.
void use_again(Scene& scene) {
    for (int i = 0; i < 200; ++i) {
        CAPTURE(i);
        REQUIRE(scene.guest.code("alloc a " + bytes(10 * kMiB)) == kSuccess);
        REQUIRE(scene.guest.code("free a") == kSuccess);
    }
}

// A stream, another one, and in the cache two idle segments and a block that is used.
void cache_two(Scene& scene, uint64_t first, uint64_t second) {
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("stream other") == kSuccess);
    REQUIRE(scene.guest.code("alloc first " + bytes(first)) == kSuccess);
    REQUIRE(scene.guest.code("alloc used 65536") == kSuccess);
    REQUIRE(scene.guest.code("alloc second " + bytes(second)) == kSuccess);
    REQUIRE(scene.guest.code("free first") == kSuccess);
    REQUIRE(scene.guest.code("free second") == kSuccess);
}

/// How memory is cached and freed.
struct CachingMode {
    const char *allocator, *free;

    operator Words() const {
        return {std::string("CUSLICE_ALLOCATOR=") + allocator, std::string("CUSLICE_FREE=") + free};
    }
};
constexpr CachingMode kModes[] = {{"growth", "strict"}, {"growth", "deferred"}, {"prealloc", "strict"}};

}  // namespace

TEST_CASE("a capture is over when it has ended or its stream has, whatever context is current then") {
    const std::string free = GENERATE("strict", "deferred"), end = GENERATE("end s", "unstream s");
    const bool newer = GENERATE(false, true);
    CAPTURE(free, end, newer);
    Scene scene("2xt4", growth(free, {"CUSLICE_FAKE_NEWER=1"}));
    REQUIRE(scene.guest.code("retain 1") == kSuccess);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code(std::string("begin s relaxed") + (newer ? " newer" : "")) == kSuccess);
    REQUIRE(scene.guest.code("current 1") == kSuccess);
    REQUIRE(scene.guest.code(end) == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    use_again(scene);
}

TEST_CASE("a capture that ended where no hook is keeps no memory from being used again") {
    const std::string free = GENERATE("strict", "deferred");
    CAPTURE(free);
    Scene scene("2xt4", growth(free));
    REQUIRE(scene.guest.code("hidden 1") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("begin s relaxed") == kSuccess);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("hiddenrelease 1") == kSuccess);
    use_again(scene);
}

TEST_CASE("a capture goes on when a second one fails to begin in its stream") {
    const std::string free = GENERATE("strict", "deferred");
    CAPTURE(free);
    Scene scene("1xt4", growth(free));
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    const uint64_t block = scene.guest.number("alloc a 1000000");
    REQUIRE(scene.guest.code("begin s global") == kSuccess);
    CHECK(scene.guest.code("begin s global") == kIllegalState);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.number("alloc b 1000000") != block);
    CHECK(scene.guest.code("end s") == kSuccess);
}

TEST_CASE("what the driver forbids during a capture is the answer, and costs nothing afterwards") {
    Scene scene("1xt4", growth());
    cache_two(scene, 100 * kMiB, 150 * kMiB);
    const uint64_t free = scene.free(), held = scene.held().used;
    REQUIRE(scene.guest.code("begin s global") == kSuccess);
    CHECK(scene.guest.code("alloc more " + bytes(400 * kMiB)) == kStreamCaptureUnsupported);
    CHECK(scene.guest.code("end s") == kStreamCaptureInvalidated);
    CHECK(scene.free() == free);
    CHECK(scene.held().used <= held);  // what lay idle was given back for it
    CHECK(scene.guest.code("alloc more " + bytes(800 * kMiB)) == kSuccess);
}

// By a free of a thread whose mode is relaxed.
TEST_CASE("what lies idle is given back during a capture where memory is short, and that ends none") {
    const bool newer = GENERATE(false, true);
    const std::string mode = GENERATE("relaxed", "local");
    CAPTURE(newer, mode);
    Scene scene("1xt4", growth("strict", {"CUSLICE_FAKE_NEWER=1"}));
    cache_two(scene, 300 * kMiB, 400 * kMiB);
    const uint64_t free = scene.free(), held = scene.held().used;
    REQUIRE(scene.guest.code("begin s " + mode + (newer ? " newer" : "")) == kSuccess);
    CHECK(scene.guest.code("thread alloc more " + bytes(800 * kMiB) + " on=other") == kSuccess);
    CHECK(scene.held().used > held);
    CHECK(scene.guest.code("end s") == kSuccess);
    CHECK(scene.free() < free);
}

// A thread looks for captures before it waits for the GPU: none begins in between.
TEST_CASE("captures of one thread and frees of others don't disturb each other, and no memory is refused") {
    const CachingMode mode = GENERATE(from_range(std::begin(kModes), std::end(kModes)));
    const std::string of_capture = GENERATE("relaxed", "local", "global");
    const std::string stream = GENERATE("own", "perthread");
    const std::string largest = GENERATE("4000", "8388608");
    CAPTURE(mode.allocator, mode.free, of_capture, stream, largest);
    Scene scene("1xt4", mode);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    CHECK(scene.guest.ask("captures 20000 " + of_capture + " " + stream + " " + largest) == "0 0 0 0");
    CHECK(scene.held().peak <= kGiB);
}

TEST_CASE("captures in one context and frees in another don't disturb each other") {
    const std::string free = GENERATE("strict", "deferred"), gpu = GENERATE("0", "1");
    CAPTURE(free, gpu);
    Scene scene("2xt4", growth(free));
    REQUIRE(scene.guest.code("create other " + gpu) == kSuccess);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    CHECK(scene.guest.ask("captures 10000 relaxed own 1000000 other") == "0 0 0 0");
}

// Ten times the slice, while a capture goes on that nobody ends: natively none of it is refused.
TEST_CASE("no memory is refused for a capture that goes on, and none ends by that") {
    const CachingMode mode = GENERATE(from_range(std::begin(kModes), std::end(kModes)));
    const std::string of_capture = GENERATE("relaxed", "local", "global");
    CAPTURE(mode.allocator, mode.free, of_capture);
    Scene scene("1xt4", mode);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("begin s " + of_capture) == kSuccess);
    CHECK(scene.guest.ask("exchange 4000 8388608 " + of_capture) == "0 0 0");
    CHECK(scene.guest.code("end s") == kSuccess);
    CHECK(scene.held().peak <= kGiB);
}

// Both partitions' streams are in one context of the driver's.
TEST_CASE("a partition's context ends while a stream of another one is captured, and the capture goes on") {
    const std::string mode = GENERATE("relaxed", "local"), thread = GENERATE("", "thread ");
    CAPTURE(mode, thread);
    const Folder books;
    Guest guest(Guest::route("linked"),
                sliced("1xt4", books.path(), {"CUSLICE_SPLIT=0=1GiB+1GiB", "CUSLICE_HEADROOM=16MiB"}));
    REQUIRE(guest.code("init") == kSuccess);
    REQUIRE(guest.code("create other 1") == kSuccess);
    REQUIRE(guest.code("retain 0") == kSuccess);
    REQUIRE(guest.code("stream s") == kSuccess);
    REQUIRE(guest.code("begin s " + mode) == kSuccess);
    CHECK(guest.code(thread + "destroy other") == kSuccess);
    CHECK(guest.code("end s") == kSuccess);
}

// cuslice can't wait for what no hook sees, but that is no reason to refuse the program's free.
TEST_CASE("a free is not refused for a capture that began where no hook is") {
    const std::string free = GENERATE("strict", "deferred"), thread = GENERATE("", "thread ");
    CAPTURE(free, thread);
    Scene scene("1xt4", growth(free));
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("alloc small 4000") == kSuccess);
    REQUIRE(scene.guest.code("alloc large " + bytes(100 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("hiddenbegin s") == kSuccess);
    CHECK(scene.guest.code(thread + "free small") == kSuccess);
    CHECK(scene.guest.code(thread + "free large") == kSuccess);
    scene.guest.code("end s");
    use_again(scene);
}

TEST_CASE("calls of cuslice's own end no capture, also of those that begin where no hook is") {
    const std::string thread = GENERATE("", "thread ");
    CAPTURE(thread);
    Scene scene("1xt4", growth());
    cache_two(scene, 300 * kMiB, 400 * kMiB);
    REQUIRE(scene.guest.code("hiddenbegin s") == kSuccess);
    CHECK(scene.guest.code(thread + "piece more " + bytes(800 * kMiB)) == kSuccess);
    CHECK(scene.guest.ask("capturemode") == "0 0");
    CHECK(scene.guest.code("end s") == kSuccess);
}

// An H200's driver ends the capture of whoever asks a pool for its figures, or a captured stream for its GPU.
TEST_CASE("memory that is allocated and freed in a capture belongs to the graph, and asking for it ends no capture") {
    const Words settings = GENERATE(Words{}, growth(), growth("deferred"));
    const std::string mode = GENERATE("local", "global"), gpus = GENERATE("1xt4", "2xt4");
    CAPTURE(settings, mode, gpus);
    Scene scene(gpus, settings);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("alloc before " + bytes(100 * kMiB) + " on=s") == kSuccess);
    const uint64_t held = scene.held().used;
    REQUIRE(scene.guest.code("begin s " + mode) == kSuccess);
    CHECK(scene.guest.code("alloc inside " + bytes(200 * kMiB) + " on=s") == kSuccess);
    CHECK(scene.held().used == held);
    CHECK(scene.guest.code("freeasync inside s") == kSuccess);
    CHECK(scene.guest.ask("capturemode") == "0 0");
    CHECK(scene.guest.code("end s") == kSuccess);
    CHECK(scene.held().used == held);
}

TEST_CASE("calls that a capture allows end none, though cuslice asks the pools for their figures in them") {
    const Words settings = GENERATE(Words{}, growth());
    const std::string mode = GENERATE("local", "global"), thread = GENERATE("", "thread ");
    CAPTURE(settings, mode, thread);
    Scene scene("1xt4", settings);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("alloc before " + bytes(100 * kMiB) + " on=s") == kSuccess);
    REQUIRE(scene.guest.code("begin s " + mode) == kSuccess);
    CHECK(scene.guest.code(thread + "info") == kSuccess);
    CHECK(scene.guest.code(thread + "piece more " + bytes(100 * kMiB)) == kSuccess);
    CHECK(scene.guest.code(thread + "piece toomuch " + bytes(2000 * kMiB)) == kOutOfMemory);
    CHECK(scene.guest.code("end s") == kSuccess);
}

TEST_CASE("what the driver doesn't take back stays in the cache") {
    Scene scene("1xt4", growth("strict", {"CUSLICE_FAKE_INJECT=cuMemFree_v2:1=999"}));
    cache_two(scene, 300 * kMiB, 400 * kMiB);
    const uint64_t free = scene.free(), held = scene.held().used;
    CHECK(scene.guest.code("alloc more " + bytes(800 * kMiB) + " on=other") == kOutOfMemory);
    CHECK(scene.free() == free);
    CHECK(scene.held().used == held);
    CHECK(scene.guest.code("alloc first " + bytes(300 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("alloc second " + bytes(400 * kMiB)) == kSuccess);
    CHECK(scene.held().used == held);
    CHECK(scene.guest.code("free first") == kSuccess);
    CHECK(scene.guest.code("free second") == kSuccess);
    CHECK(scene.guest.code("alloc more " + bytes(800 * kMiB) + " on=other") == kSuccess);
}

}  // namespace cuslice::tests
