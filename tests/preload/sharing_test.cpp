// Memory that one program under a slice makes and another opens: counted once, and nobody gets past a limit by it.
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

// Another guest on the same GPU, under a slice of its own.
struct Neighbour {
    explicit Neighbour(Scene& scene, const std::string& limit = "1024MiB")
        : scene_(scene), guest(Guest::route("linked"), sliced(scene.fake, scene.books.path(), Scene::with({}, limit))) {
        REQUIRE(guest.code("init") == 0);
        REQUIRE(guest.code("retain 0") == 0);
    }
    Held held() { return books_of(scene_.books.path(), guest.pid()); }
    std::uint64_t free() { return guest.number("info"); }

    Scene& scene_;
    Guest guest;
};

std::string second_word(const std::string& text) { return split_words(text).at(1); }

// The one that both forms of sharing have in common.
struct Form {
    std::string make, give, open, close, end;
};
const Form kHandle{"alloc a ", "ipcget a", "ipcopen b ", "ipcclose b", "free a"};
const Form kDescriptor{"piece a ", "export a", "import b ", "unpiece b", "unpiece a"};

TEST_CASE("memory of another program is counted where it was made, as long as it is there") {
    const bool descriptor = GENERATE(false, true);
    const Form& form = descriptor ? kDescriptor : kHandle;
    CAPTURE(descriptor);
    Scene owner("1xt4", {});
    REQUIRE(owner.guest.code("retain 0") == 0);
    Neighbour other(owner);
    const std::uint64_t free = owner.free(), other_free = other.free();
    REQUIRE(owner.guest.code(form.make + bytes(300 * kMiB) + (descriptor ? " export" : "")) == 0);
    const std::string given = second_word(owner.guest.ask(form.give));
    REQUIRE(other.guest.code(form.open + given) == 0);
    CHECK(owner.free() == free - 300 * kMiB);
    CHECK(other.free() == other_free);

    SECTION("the other closes it first") {
        CHECK(other.guest.code(form.close) == 0);
        CHECK(owner.free() == free - 300 * kMiB);
        CHECK(owner.guest.code(form.end) == 0);
        CHECK(owner.free() == free);
        CHECK(other.free() == other_free);
    }
    SECTION("its owner gives it back first, and then it is the other's") {
        CHECK(owner.guest.code(form.end) == 0);
        CHECK(owner.held().used == 104 * kMiB);
        CHECK(owner.free() == free);
        CHECK(other.held().used == 404 * kMiB);
        // It comes out of what the other may have: before a refusal the driver's figure is read again.
        CHECK(other.guest.code("fill " + bytes(4 * kMiB)) == 2);
        CHECK(other.held().used <= kGiB);
        CHECK(other.held().used + 4 * kMiB + 16 * kMiB > kGiB);
        const std::uint64_t left = other.free();
        CHECK(other.guest.code(form.close) == 0);
        CHECK(other.free() == left + 300 * kMiB);
    }
    SECTION("its owner is killed, and then it is the other's") {
        owner.guest.kill(9);
        owner.guest.finish();
        CHECK(other.held().used == 404 * kMiB);
        other.guest.let_change("free", "what was the owner's is seen to be this program's when it is refused");
        // Nobody tells this program of it: it is seen at the next measurement, as before a refusal.
        CHECK(other.guest.code("alloc most " + bytes(other_free + 1)) == 2);
        CHECK(other.free() == other_free - 300 * kMiB);
        CHECK(other.guest.code("alloc most " + bytes(other_free - 299 * kMiB)) == 2);
        CHECK(other.guest.code("alloc most " + bytes(other_free - 300 * kMiB)) == 0);
        CHECK(other.free() == 0);
        CHECK(other.guest.code(form.close) == 0);
        CHECK(other.free() == 300 * kMiB);
    }
}

TEST_CASE("a descriptor of memory that nobody holds any more is refused where it doesn't fit") {
    Scene owner("1xt4", {});
    REQUIRE(owner.guest.code("retain 0") == 0);
    REQUIRE(owner.guest.code("piece a " + bytes(300 * kMiB) + " export") == 0);
    const std::string given = second_word(owner.guest.ask("export a"));
    // It lives on in the descriptor alone.
    CHECK(owner.guest.code("unpiece a") == 0);
    CHECK(owner.held().used == 104 * kMiB);
    Neighbour small(owner, "256MiB"), large(owner, "512MiB");
    const std::uint64_t free = large.free();
    CHECK(small.guest.code("import b " + given) == 2);
    CHECK(small.held().used == 104 * kMiB);
    REQUIRE(small.guest.complaints().size() == 1);
    CHECK(small.guest.complaints()[0].find("cuMemImportFromShareableHandle tried to allocate 300.0 MiB") !=
          std::string::npos);
    CHECK(large.guest.code("import b " + given) == 0);
    CHECK(large.free() == free - 300 * kMiB);
    CHECK(large.held().used == 404 * kMiB);
    CHECK(large.guest.code("unpiece b") == 0);
    CHECK(large.free() == free);
}

TEST_CASE("external memory whose maker has gone counts until it is freed") {
    Scene owner("1xt4", {});
    REQUIRE(owner.guest.code("retain 0") == 0);
    REQUIRE(owner.guest.code("piece a " + bytes(300 * kMiB) + " export") == 0);
    const std::string given = second_word(owner.guest.ask("export a"));
    Neighbour small(owner, "256MiB"), large(owner, "512MiB");
    const std::uint64_t free = large.free();
    CHECK(owner.guest.code("unpiece a") == 0);  // it lives on in the descriptor alone
    CHECK(small.guest.code("external b " + given + " " + bytes(300 * kMiB)) == 2);
    CHECK(small.held().used == 104 * kMiB);
    CHECK(large.guest.code("external b " + given + " " + bytes(300 * kMiB)) == 0);
    CHECK(large.free() == free - 300 * kMiB);
    CHECK(large.guest.code("unexternal b") == 0);
    CHECK(large.free() == free - 300 * kMiB);
    CHECK(large.guest.code("free b") == 0);
    CHECK(large.held().used == 104 * kMiB);
    CHECK(large.free() == free);
}

TEST_CASE("programs under slices order their work by an event between them, and it takes nothing") {
    Scene owner("1xt4", {});
    REQUIRE(owner.guest.code("retain 0") == 0);
    Neighbour other(owner);
    const std::uint64_t free = owner.free(), other_free = other.free();
    REQUIRE(owner.guest.code("alloc a " + bytes(300 * kMiB)) == 0);
    const std::string memory = second_word(owner.guest.ask("ipcget a"));
    REQUIRE(owner.guest.code("event e") == 0);
    const std::string event = second_word(owner.guest.ask("eventget e"));
    REQUIRE(other.guest.code("ipcopen b " + memory) == 0);
    REQUIRE(other.guest.code("eventopen e " + event) == 0);
    for (Guest* recorder : {&owner.guest, &other.guest}) {
        Guest& waiter = recorder == &owner.guest ? other.guest : owner.guest;
        CHECK(recorder->code("record e") == 0);
        CHECK(waiter.code("await e") == 0);
        CHECK(waiter.code("sync") == 0);
    }
    CHECK(owner.free() == free - 300 * kMiB);
    CHECK(other.free() == other_free);
    CHECK(other.guest.code("ipcclose b") == 0);
    CHECK(owner.guest.code("free a") == 0);
    CHECK(owner.free() == free);
    CHECK(owner.held().used == 104 * kMiB);
    CHECK(other.held().used == 104 * kMiB);
}

TEST_CASE("importing where it was made is no way round the limit") {
    Scene scene("1xt4", {});
    REQUIRE(scene.guest.code("retain 0") == 0);
    const std::uint64_t free = scene.free();
    REQUIRE(scene.guest.code("piece a " + bytes(300 * kMiB) + " export") == 0);
    const std::string given = second_word(scene.guest.ask("export a"));
    REQUIRE(scene.guest.code("import b " + given) == 0);
    REQUIRE(scene.guest.code("map b " + bytes(300 * kMiB)) == 0);
    CHECK(scene.guest.code("unpiece a") == 0);
    CHECK(scene.free() == free - 300 * kMiB);
    CHECK(scene.guest.code("unpiece b") == 0);
    CHECK(scene.free() == free - 300 * kMiB);
    CHECK(scene.guest.code("fill " + bytes(4 * kMiB)) == 2);
    CHECK(scene.held().peak <= kGiB);
    CHECK(scene.guest.code("freeall") == 0);
    CHECK(scene.guest.code("unmap b") == 0);
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
    REQUIRE(scene.guest.code("retain 0") == 0);
    const std::string size = small ? "4096" : bytes(kMiB);  // two to a segment, so that it stays here
    REQUIRE(scene.guest.code("alloc keep " + size) == 0);
    std::vector<std::uint64_t> given{scene.guest.number("alloc a " + size)};
    // Whatever the driver makes of it.
    if (how != "none") CHECK(scene.guest.ask(how) != "");
    CHECK(scene.guest.code("free a") == 0);
    bool again = false;
    for (int i = 0; i < 600; i++) {
        const std::string name = "b" + std::to_string(i);
        again |= scene.guest.number("alloc " + name + " " + size) == given[0];
        if (i % 2) CHECK(scene.guest.code("free " + name) == 0);
    }
    CHECK(again == (how == "none"));
}

TEST_CASE("an export by address is answered as documented, under growth as without cuslice") {
    const bool cached = GENERATE(false, true);
    CAPTURE(cached);
    Scene scene("1xt4", cached ? Words{"CUSLICE_ALLOCATOR=growth"} : Words{});
    REQUIRE(scene.guest.code("retain 0") == 0);
    REQUIRE(scene.guest.code("alloc small 1000") == 0);
    REQUIRE(scene.guest.code("alloc a 700000") == 0);
    REQUIRE(scene.guest.code("alloc b " + bytes(4 * kMiB)) == 0);
    REQUIRE(scene.guest.code("alloc c " + bytes(2 * kMiB)) == 0);
    // Whole pages of an allocation of 2 MiB and more: not refused for its address, only as this GPU exports nothing.
    CHECK(scene.guest.code("dmabuf b " + bytes(4 * kMiB)) == 801);
    CHECK(scene.guest.code("dmabuf c " + bytes(2 * kMiB)) == 801);
    CHECK(scene.guest.code("dmabuf b 1000") == 1);
}

}  // namespace
}  // namespace cuslice::tests
