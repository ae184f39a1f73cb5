// Whom a free waits for where memory is cached: every context that can still touch the block, and nobody else. And that
// it ends no capture.
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

Words growth(const std::string& free, const Words& more = {}) {
    Words words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// A block on GPU 0, whose context is current, and a stream on GPU 1.
void use_two(Scene& scene, const std::string& block) {
    REQUIRE(scene.guest.code("retain 1") == 0);
    REQUIRE(scene.guest.code("stream s") == 0);
    REQUIRE(scene.guest.code("retain 0") == 0);
    REQUIRE(scene.guest.code("alloc a " + block) == 0);
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
    REQUIRE(scene.guest.code("current 1") == 0);
    REQUIRE(scene.guest.code("hold s") == 0);
    REQUIRE(scene.guest.code("current 0") == 0);
    CHECK(scene.guest.code("free a") == 0);
    CHECK(scene.guest.ask("letgo") == "0 1");
}

TEST_CASE("deferred: memory that is needed is had without waiting for a GPU that has no access to it") {
    const std::string gpus = kPairs[GENERATE(0, 1)];
    CAPTURE(gpus);
    Scene scene(gpus, growth("deferred"), "2048MiB");
    use_two(scene, bytes(1000 * kMiB));
    REQUIRE(scene.guest.code("current 1") == 0);
    REQUIRE(scene.guest.code("hold s") == 0);
    REQUIRE(scene.guest.code("current 0") == 0);
    CHECK(scene.guest.code("free a") == 0);
    CHECK(scene.guest.code("alloc b " + bytes(1100 * kMiB)) == 0);
    CHECK(scene.guest.ask("letgo") == "0 1");
}

TEST_CASE("strict: a free waits for the work of the block's GPU, and of GPUs that have peer access to it") {
    const bool small = GENERATE(false, true), other_context = GENERATE(false, true);
    CAPTURE(small, other_context);
    Scene scene("2xt4", growth("strict", {"CUSLICE_FAKE_STREAMS=late"}));
    use_two(scene, small ? "1000" : "1000000");
    if (other_context) {  // on the same GPU
        REQUIRE(scene.guest.code("create c 0") == 0);
        REQUIRE(scene.guest.code("stream s") == 0);
    } else {
        REQUIRE(scene.guest.code("current 1") == 0);
        REQUIRE(scene.guest.code("peer 0") == 0);
    }
    REQUIRE(scene.guest.code("work s") == 0);
    REQUIRE(scene.guest.code("current 0") == 0);
    CHECK(scene.guest.code("free a") == 0);
    CHECK(scene.guest.ask("worked") == "0 1");
}

}  // namespace cuslice::tests
