// Memory that a process has given back is to be had by its job and group at once, though it doesn't call any more: as
// charged and as the GPU's accounting has it.
#include <signal.h>
#include <unistd.h>

#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

constexpr std::uint64_t kLimit = 2 * kGiB, kHeadroom = 16 * kMiB, kBlock = 16 * kMiB;
// In a slice of 2 GiB, beside its own context.
constexpr std::uint64_t kTaken = 1500 * kMiB;

/// Two processes that share a limit.
struct Two {
    explicit Two(const std::string& scope, const Words& more = {}) {
        Words settings{"CUSLICE_HEADROOM=16MiB"};
        if (scope == "job") settings.insert(settings.end(), {"CUSLICE_LIMIT=2GiB", "CUSLICE_JOB=shared"});
        if (scope == "group") settings.insert(settings.end(), {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=2GiB"});
        if (scope == "job in a group")
            settings.insert(settings.end(), {"CUSLICE_LIMIT=2GiB", "CUSLICE_JOB=shared", "CUSLICE_GROUP=lab",
                                             "CUSLICE_GROUP_LIMIT=2GiB"});
        settings.insert(settings.end(), more.begin(), more.end());
        for (auto* one : {&owner, &other}) {
            *one = std::make_unique<Guest>(Guest::route("linked"), sliced("1xt4", books.path(), settings));
            REQUIRE((*one)->code("init") == 0);
            REQUIRE((*one)->code("retain 0") == 0);
        }
    }
    std::uint64_t held(Guest& guest) const { return books_of(books.path(), guest.child()).used; }
    std::uint64_t together() const { return held(*owner) + held(*other); }
    void owner_does(const Words& lines) {
        for (const std::string& line : lines) {
            CAPTURE(line);
            REQUIRE(owner->code(line) == 0);
        }
    }

    Folder books;
    std::unique_ptr<Guest> owner, other;
};

struct Kind {
    std::string name;
    Words takes, gives_back;
};

const std::string kBytes = bytes(kTaken);

const std::vector<Kind> kKinds{
    {"stream-ordered, freed", {"alloc x " + kBytes + " async"}, {"freeasync x", "sync"}},
    {"stream-ordered, freed by cuMemFree", {"alloc x " + kBytes + " async"}, {"free x", "sync"}},
    {"stream-ordered, many blocks",
     {"alloc x " + bytes(500 * kMiB) + " async", "alloc y " + bytes(500 * kMiB) + " async",
      "alloc z " + bytes(500 * kMiB) + " async"},
     {"freeasync x", "freeasync y", "freeasync z", "sync"}},
    {"stream-ordered, used again",
     {"alloc x " + kBytes + " async", "freeasync x", "alloc x " + kBytes + " async"},
     {"freeasync x", "sync"}},
    {"stream-ordered, kept and trimmed",
     {"pool default 0", "keep default " + bytes(kLimit), "alloc x " + kBytes + " async"},
     {"freeasync x", "sync", "trim default 0"}},
    {"stream-ordered, a pool of its own",
     {"pool mine 0", "usepool mine", "alloc x " + kBytes + " async"},
     {"freeasync x", "sync"}},
    {"a graph's", {"graph g " + kBytes + " 1 free", "launch g"}, {"sync", "graphtrim"}},
    {"a graph's, used again", {"graph g " + kBytes + " 1 free", "launch g", "launch g"}, {"sync", "graphtrim"}},
    {"a graph's, left and freed", {"graph g " + kBytes + " 1 leave", "launch g"}, {"graphfree g", "sync", "graphtrim"}},
    {"exported once", {"alloc x " + kBytes, "ipcget x"}, {"free x"}},
    {"exported as a descriptor", {"piece x " + kBytes + " export", "export x close"}, {"unpiece x"}},
};

}  // namespace

TEST_CASE("what a process that doesn't call has given back is had by the others of its job and group") {
    const auto scope = GENERATE(std::string("job"), "group", "job in a group");
    const auto& kind = GENERATE(from_range(kKinds));
    const bool stopped = GENERATE(false, true);
    if (stopped && scope != "job") return;
    if (scope == "job in a group" && kind.name != kKinds.front().name) return;
    CAPTURE(scope, kind.name, stopped);
    Two two(scope);
    const std::uint64_t contexts = two.together();
    two.owner_does(kind.takes);
    CHECK(two.held(*two.owner) >= kTaken);
    two.owner_does(kind.gives_back);
    CHECK(two.together() == contexts);
    if (stopped) two.owner->kill(SIGSTOP);

    const std::uint64_t free = kLimit - kHeadroom - two.together();
    const std::uint64_t granted = [&] {
        if (two.other->code("alloc most " + bytes(free / 2)) != 0) return std::uint64_t{0};
        const std::uint64_t blocks = two.other->number("fill " + bytes(kBlock));
        return free / 2 + blocks * kBlock;
    }();
    CHECK(granted >= free - free / 50);
    CHECK(two.together() <= kLimit);

    if (stopped) two.owner->kill(SIGCONT);
    // Its charge is right again with its next call, and it is bound by the limit as ever.
    CHECK(two.owner->code("alloc more " + bytes(64 * kMiB)) == 2);
    CHECK(two.owner->code("alloc more " + bytes(64 * kMiB) + " async") == 2);
    CHECK(two.together() <= kLimit);
    CHECK(two.other->code("free most") == 0);
    CHECK(two.owner->code("alloc more " + bytes(64 * kMiB) + " async") == 0);
    CHECK(two.owner->code("alloc again " + bytes(64 * kMiB)) == 0);
    CHECK(two.together() <= kLimit);
}

TEST_CASE("a process that is told to take what another one gave back may use pools and make modules there") {
    Two two("job");
    two.owner_does({"alloc x " + kBytes + " async", "freeasync x", "sync"});
    CHECK(two.other->code("alloc a " + bytes(1000 * kMiB) + " async") == 0);
    CHECK(two.other->code("alloc b " + bytes(700 * kMiB) + " async") == 0);
    CHECK(two.other->code("alloc c " + bytes(700 * kMiB) + " async") == 2);
    CHECK(two.together() <= kLimit);
}

TEST_CASE("what a process still holds, or may be about to take, is nobody else's") {
    const auto scope = GENERATE(std::string("job"), "group");
    CAPTURE(scope);
    Two two(scope);
    SECTION("what a pool keeps") {
        two.owner_does(
            {"pool default 0", "keep default " + bytes(kLimit), "alloc x " + kBytes + " async", "freeasync x", "sync"});
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == 2);
    }
    SECTION("managed memory, wherever the driver keeps it") {
        two.owner_does({"alloc x " + kBytes + " managed"});
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == 2);
    }
    SECTION("what another process of the job opened") {
        two.owner_does({"alloc x " + kBytes});
        const std::string handle = split_words(two.owner->ask("ipcget x")).at(1);
        REQUIRE(two.other->code("ipcopen y " + handle) == 0);
        two.owner_does({"free x"});
        two.other->let_change("free", "what was the owner's is seen to be this program's when it is refused");
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == 2);
        CHECK(two.together() <= kLimit);
    }
    CHECK(two.together() <= kLimit);
}

}  // namespace cuslice::tests
