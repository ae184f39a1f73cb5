// SPDX-License-Identifier: Apache-2.0
// Memory that one program under a slice makes and another opens: counted once, and nobody gets past a limit by it.
#include "tests/preload/neighbour.h"

namespace cuslice::tests {
namespace {

// The one that both forms of sharing have in common.
struct Form {
    std::string make, give, open, close, end;
};
const Form kHandle{"alloc a ", "ipcget a", "ipcopen b ", "ipcclose b", "free a"};
const Form kDescriptor{"piece a ", "export a", "import b ", "unpiece b", "unpiece a"};

// After that of a handle is the other's, and that of a descriptor its maker's still: exported_test.cpp.
TEST_CASE("memory of another program is counted where it was made, as long as it is there") {
    const bool descriptor = GENERATE(false, true);
    const Form& form = descriptor ? kDescriptor : kHandle;
    CAPTURE(descriptor);
    Scene owner("1xt4", {});
    REQUIRE(owner.guest.code("retain 0") == kSuccess);
    Neighbour other(owner);
    const uint64_t free = owner.free(), other_free = other.free();
    REQUIRE(owner.guest.code(form.make + bytes(300 * kMiB) + (descriptor ? " export" : "")) == kSuccess);
    const std::string given = second_word(owner.guest.ask(form.give));
    REQUIRE(other.guest.code(form.open + given) == kSuccess);
    CHECK(owner.free() == free - 300 * kMiB);
    CHECK(other.free() == other_free);

    SECTION("the other closes it first") {
        CHECK(other.guest.code(form.close) == kSuccess);
        CHECK(owner.free() == free - 300 * kMiB);
        CHECK(owner.guest.code(form.end) == kSuccess);
        if (descriptor)
            CHECK(owner.guest.code("unexport a") == kSuccess);
        CHECK(owner.free() == free);
        CHECK(other.free() == other_free);
    }
    if (descriptor)
        return;
    SECTION("its owner gives it back first, and then it is the other's") {
        CHECK(owner.guest.code(form.end) == kSuccess);
        CHECK(owner.held().used == 104 * kMiB);
        CHECK(owner.free() == free);
        CHECK(other.held().used == 404 * kMiB);
        // It comes out of what the other may have: before a refusal the driver's figure is read again.
        CHECK(other.guest.code("fill " + bytes(4 * kMiB)) == kOutOfMemory);
        CHECK(other.held().used <= kGiB);
        CHECK(other.held().used + 4 * kMiB + 16 * kMiB > kGiB);
        const uint64_t left = other.free();
        CHECK(other.guest.code(form.close) == kSuccess);
        CHECK(other.free() == left + 300 * kMiB);
    }
    SECTION("its owner is killed, and then it is the other's") {
        owner.guest.kill(9);
        owner.guest.finish();
        CHECK(other.held().used == 404 * kMiB);
        other.guest.let_change("free", "what was the owner's is seen to be this program's when it is refused");
        // Nobody tells this program of it: it is seen at the next measurement, as before a refusal.
        CHECK(other.guest.code("alloc most " + bytes(other_free + 1)) == kOutOfMemory);
        CHECK(other.free() == other_free - 300 * kMiB);
        CHECK(other.guest.code("alloc most " + bytes(other_free - 299 * kMiB)) == kOutOfMemory);
        CHECK(other.guest.code("alloc most " + bytes(other_free - 300 * kMiB)) == kSuccess);
        CHECK(other.free() == 0);
        CHECK(other.guest.code(form.close) == kSuccess);
        CHECK(other.free() == 300 * kMiB);
    }
}

TEST_CASE("programs under slices order their work by an event between them, and it takes nothing") {
    Scene owner("1xt4", {});
    REQUIRE(owner.guest.code("retain 0") == kSuccess);
    Neighbour other(owner);
    const uint64_t free = owner.free(), other_free = other.free();
    REQUIRE(owner.guest.code("alloc a " + bytes(300 * kMiB)) == kSuccess);
    const std::string memory = second_word(owner.guest.ask("ipcget a"));
    REQUIRE(owner.guest.code("event e") == kSuccess);
    const std::string event = second_word(owner.guest.ask("eventget e"));
    REQUIRE(other.guest.code("ipcopen b " + memory) == kSuccess);
    REQUIRE(other.guest.code("eventopen e " + event) == kSuccess);
    for (Guest* recorder : {&owner.guest, &other.guest}) {
        Guest& waiter = recorder == &owner.guest ? other.guest : owner.guest;
        CHECK(recorder->code("record e") == kSuccess);
        CHECK(waiter.code("await e") == kSuccess);
        CHECK(waiter.code("sync") == kSuccess);
    }
    CHECK(owner.free() == free - 300 * kMiB);
    CHECK(other.free() == other_free);
    CHECK(other.guest.code("ipcclose b") == kSuccess);
    CHECK(owner.guest.code("free a") == kSuccess);
    CHECK(owner.free() == free);
    CHECK(owner.held().used == 104 * kMiB);
    CHECK(other.held().used == 104 * kMiB);
}

TEST_CASE("importing where it was made is no way round the limit") {
    Scene scene("1xt4", {});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const uint64_t free = scene.free();
    REQUIRE(scene.guest.code("piece a " + bytes(300 * kMiB) + " export") == kSuccess);
    const std::string given = second_word(scene.guest.ask("export a"));
    REQUIRE(scene.guest.code("import b " + given) == kSuccess);
    REQUIRE(scene.guest.code("map b " + bytes(300 * kMiB)) == kSuccess);
    CHECK(scene.guest.code("unpiece a") == kSuccess);
    CHECK(scene.free() == free - 300 * kMiB);
    CHECK(scene.guest.code("unpiece b") == kSuccess);
    CHECK(scene.free() == free - 300 * kMiB);
    CHECK(scene.guest.code("fill " + bytes(4 * kMiB)) == kOutOfMemory);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.code("freeall") == kSuccess);
    CHECK(scene.guest.code("unmap b") == kSuccess);
    CHECK(scene.free() == free - 300 * kMiB);  // the descriptor has it
    CHECK(scene.guest.code("unexport a") == kSuccess);
    CHECK(scene.free() == free);
}

TEST_CASE("growth: memory that another device may have been given is not used again by the cache") {
    // A dma-buf; what nvidia-peermem and gdrdrv need before they pin pages. The range of a dma-buf is in whole pages,
    // and so may begin in one of a small block's neighbours.
    const std::string how = GENERATE("dmabuf a 1048576", "dmabuf a 4096", "syncmemops a", "tokens a", "none");
    const std::string free = GENERATE("strict", "deferred");
    const bool small = GENERATE(false, true);
    CAPTURE(how, free, small);
    Scene scene("1xt4", {"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=" + free});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    const std::string size = small ? "4096" : bytes(kMiB);  // two to a segment, so that it stays here
    REQUIRE(scene.guest.code("alloc keep " + size) == kSuccess);
    std::vector<uint64_t> given{scene.guest.number("alloc a " + size)};
    // The driver may grant or refuse it: any answer will do.
    if (how != "none")
        CHECK(scene.guest.ask(how) != "");
    CHECK(scene.guest.code("free a") == kSuccess);
    bool again = false;
    for (int i = 0; i < 600; i++) {
        const std::string name = "b" + std::to_string(i);
        again |= scene.guest.number("alloc " + name + " " + size) == given[0];
        if (i % 2)
            CHECK(scene.guest.code("free " + name) == kSuccess);
    }
    CHECK(again == (how == "none"));
}

TEST_CASE("an export by address is answered as documented, under growth as without cuslice") {
    const bool cached = GENERATE(false, true);
    CAPTURE(cached);
    Scene scene("1xt4", cached ? Words{"CUSLICE_ALLOCATOR=growth"} : Words{});
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc small 1000") == kSuccess);
    REQUIRE(scene.guest.code("alloc a 700000") == kSuccess);
    REQUIRE(scene.guest.code("alloc b " + bytes(4 * kMiB)) == kSuccess);
    REQUIRE(scene.guest.code("alloc c " + bytes(2 * kMiB)) == kSuccess);
    // Whole pages of an allocation of 2 MiB and more: not refused for its address, only as this GPU exports nothing.
    CHECK(scene.guest.code("dmabuf b " + bytes(4 * kMiB)) == kNotSupported);
    CHECK(scene.guest.code("dmabuf c " + bytes(2 * kMiB)) == kNotSupported);
    CHECK(scene.guest.code("dmabuf b 1000") == kInvalidValue);
}

}  // namespace
}  // namespace cuslice::tests
