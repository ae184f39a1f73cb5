// SPDX-License-Identifier: Apache-2.0
// A free of cached memory waits for every context that can still touch the block, and for nobody else. It ends no
// capture.
#include "tests/preload/naps.h"
#include "tests/preload/scene.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

Words growth(const std::string& free, const Words& more = {}) {
    Words words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// A block on GPU 0, whose context is current, and a stream on GPU 1.
void use_two(Scene& scene, const std::string& block) {
    REQUIRE(scene.guest.code("retain 1") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc a " + block) == kSuccess);
}

// Two GPUs that can be peers, and two that can't.
const char* const kPairs[] = {"2xt4", "1xt4,1xa100-40g"};

}  // namespace

TEST_CASE("a free does not wait for a GPU that has no access to the block") {
    const std::string gpus = kPairs[GENERATE(0, 1)], free = GENERATE("strict", "deferred");
    const std::string size = GENERATE("1000", "1000000");
    CAPTURE(gpus, free, size);
    Scene scene(gpus, growth(free));
    use_two(scene, size);
    REQUIRE(scene.guest.code("current 1") == kSuccess);
    REQUIRE(scene.guest.code("hold s") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.ask("letgo") == "0 1");
}

TEST_CASE("deferred: memory that is needed is had without waiting for a GPU that has no access to it") {
    const std::string gpus = kPairs[GENERATE(0, 1)];
    CAPTURE(gpus);
    Scene scene(gpus, growth("deferred"), "2048MiB");
    use_two(scene, bytes(1000 * kMiB));
    REQUIRE(scene.guest.code("current 1") == kSuccess);
    REQUIRE(scene.guest.code("hold s") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.code("alloc b " + bytes(1100 * kMiB)) == kSuccess);
    CHECK(scene.guest.ask("letgo") == "0 1");
}

TEST_CASE("strict: a free waits for the work of the block's GPU, and of GPUs that have peer access to it") {
    const bool small = GENERATE(false, true), other_context = GENERATE(false, true);
    CAPTURE(small, other_context);
    Scene scene("2xt4", growth("strict", {"CUSLICE_FAKE_STREAMS=late"}));
    use_two(scene, small ? "1000" : "1000000");
    if (other_context) {  // on the same GPU
        REQUIRE(scene.guest.code("create c 0") == kSuccess);
        REQUIRE(scene.guest.code("stream s") == kSuccess);
    } else {
        REQUIRE(scene.guest.code("current 1") == kSuccess);
        REQUIRE(scene.guest.code("peer 0") == kSuccess);
    }
    REQUIRE(scene.guest.code("work s") == kSuccess);
    REQUIRE(scene.guest.code("current 0") == kSuccess);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.ask("worked") == "0 1");
}

TEST_CASE("a free ends no capture, also of those that begin by a function that nobody knows yet") {
    const std::string free = GENERATE("strict", "deferred"), mode = GENERATE("relaxed", "local", "global");
    const bool newer = GENERATE(false, true), elsewhere = GENERATE(false, true), small = GENERATE(false, true);
    CAPTURE(free, mode, newer, elsewhere, small);
    Scene scene("1xt4", growth(free, {"CUSLICE_FAKE_NEWER=1"}));
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    const std::string size = small ? "1000" : "1000000";
    const uint64_t block = scene.guest.number("alloc a " + size);
    REQUIRE(scene.guest.code("begin s " + mode + (newer ? " newer" : "")) == kSuccess);
    CHECK(scene.guest.code((elsewhere ? "thread free a" : "free a")) == kSuccess);
    // It is nobody's until somebody may ask what the GPU has done.
    CHECK(scene.guest.number("alloc b " + size) != block);
    CHECK(scene.guest.code("end s") == kSuccess);
    // And then it is waited for as before.
    CHECK(scene.guest.code("free b") == kSuccess);
    CHECK(scene.guest.code("alloc c " + size) == kSuccess);
    CHECK(scene.guest.code("free c") == kSuccess);
}

TEST_CASE("a capture that fails to begin by such a function keeps nothing from being used again") {
    Scene scene("1xt4",
                growth("strict", {"CUSLICE_FAKE_NEWER=1", "CUSLICE_FAKE_INJECT=cuStreamBeginCapture_v2:*=801"}));
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    const uint64_t block = scene.guest.number("alloc a 1000000");
    CHECK(scene.guest.code("begin s global newer") == kNotSupported);
    CHECK(scene.guest.code("free a") == kSuccess);
    CHECK(scene.guest.number("alloc b 1000000") == block);
}

TEST_CASE("what has been idle for long is not given back while a stream is captured") {
    const bool newer = GENERATE(false, true);
    CAPTURE(newer);
    Scene scene("1xt4", growth("strict", {"CUSLICE_FAKE_NEWER=1", "CUSLICE_IDLE_RELEASE=200ms"}));
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("stream s") == kSuccess);
    REQUIRE(scene.guest.code("alloc a " + bytes(10 * kMiB)) == kSuccess);
    const uint64_t used = scene.held().used;
    REQUIRE(scene.guest.code("free a") == kSuccess);
    REQUIRE(scene.guest.code(std::string("begin s global") + (newer ? " newer" : "")) == kSuccess);
    // However often it is looked for: it stays, the capture is whole, and the memory comes back when that is over.
    const uint64_t used_at_begin = scene.held().used;
    const auto then = naps_of_others(scene.guest.pid());
    CHECK(soon([&] { return napped_since(scene.guest.pid(), then, 20); }));
    CHECK(scene.held().used == used_at_begin);
    CHECK(scene.guest.code("end s") == kSuccess);
    CHECK(soon([&] { return scene.held().used < used; }));
}

}  // namespace cuslice::tests
