// SPDX-License-Identifier: Apache-2.0
// Memory that a process has given back is to be had by its job and group at once, though it doesn't call any more: as
// charged and as the GPU's accounting has it. docs/sharing.md has the table, row by row and state by state.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "tests/preload/scene.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kLimit = 2 * kGiB, kHeadroom = 16 * kMiB, kBlock = 16 * kMiB;
// In a slice of 2 GiB, beside its own context.
constexpr uint64_t kTaken = 1500 * kMiB;

const std::string kJob = "CUSLICE_JOB=shared", kLimited = "CUSLICE_LIMIT=2GiB", kSplit = "CUSLICE_SPLIT=0=2GiB+2GiB",
                  kGroup = "CUSLICE_GROUP=lab", kGroupLimit = "CUSLICE_GROUP_LIMIT=2GiB";
const std::map<std::string, Words> kScopes{
    {"job", {kJob, kLimited}},
    {"group", {kGroup, kGroupLimit}},
    {"job in a group", {kJob, kLimited, kGroup, kGroupLimit}},
    {"partition", {kJob, kSplit}},
    {"group of partitions", {kJob, kSplit, kGroup, kGroupLimit}},
    {"per process", {kLimited}},
};

/// Two processes that share a limit.
struct Two {
    explicit Two(const std::string& of, const Words& of_owner = {}) : scope(of) {
        Words settings = kScopes.at(scope);
        settings.push_back("CUSLICE_HEADROOM=16MiB");
        for (auto* one : {&other, &owner}) {
            if (one == &owner)
                settings.insert(settings.end(), of_owner.begin(), of_owner.end());
            *one = std::make_unique<Guest>(Guest::route("linked"), sliced("1xt4", books.path(), settings));
            retain_device(**one);
        }
        contexts = together();
    }
    uint64_t held(Guest& guest) const { return books_of(books.path(), guest.child()).used; }
    uint64_t together() const { return held(*owner) + held(*other); }
    void owner_does(const Words& lines) {
        for (const std::string& line : lines) {
            CAPTURE(line);
            REQUIRE(owner->code(line) == kSuccess);
        }
    }
    /// True if the other one gets `most` bytes, to 2 %: half of them as one block, and blocks of 16 MiB.
    bool other_gets(uint64_t most) {
        if (other->code("alloc most " + bytes(most / 2)) != kSuccess)
            return false;
        const uint64_t blocks = other->number("fill " + bytes(kBlock));
        return most / 2 + blocks * kBlock >= most - most / 50;
    }
    /// Bytes that both may hold together. A partition is charged with its share of contexts alone.
    uint64_t limit() const { return scope == "partition" ? kLimit + contexts / 2 : kLimit; }

    std::string scope;
    uint64_t contexts = 0;
    Folder books;
    std::unique_ptr<Guest> owner, other;
};

/// A row of the page's table: steps of the owner's, by which it gives memory back or keeps it.
struct Kind {
    std::string row;
    Words takes, gives_back, settings;
};

const std::string kBytes = bytes(kTaken), kKept = bytes(kLimit);
const Words kKeeps{"pool default 0", "keep default " + kKept, "alloc x " + kBytes + " async"};

const std::vector<Kind> kKinds{
    {"`cuMemFree`", {"alloc x " + kBytes}, {"free x"}, {}},
    {"`cuMemFreeAsync`", {"alloc x " + kBytes + " async"}, {"freeasync x", "sync"}, {}},
    {"`cuMemFreeAsync`", {"alloc x " + kBytes + " async"}, {"free x", "sync"}, {}},
    {"`cuMemFreeAsync`",
     {"alloc x " + bytes(500 * kMiB) + " async", "alloc y " + bytes(500 * kMiB) + " async",
      "alloc z " + bytes(500 * kMiB) + " async"},
     {"freeasync x", "freeasync y", "freeasync z", "sync"},
     {}},
    {"`cuMemFreeAsync`",
     {"alloc x " + kBytes + " async", "freeasync x", "alloc x " + kBytes + " async"},
     {"freeasync x", "sync"},
     {}},
    {"`cuMemFreeAsync`", {"pool mine 0", "usepool mine", "alloc x " + kBytes + " async"}, {"freeasync x", "sync"}, {}},
    {"`cuMemPoolTrimTo`", kKeeps, {"freeasync x", "sync", "trim default 0"}, {}},
    {"`cuMemPoolDestroy`",
     {"pool mine 0", "keep mine " + kKept, "alloc x " + kBytes + " pool=mine"},
     {"freeasync x", "sync", "unpool mine"},
     {}},
    {"`cuDeviceGraphMemTrim`", {"graph g " + kBytes + " 1 free", "launch g"}, {"sync", "graphtrim"}, {}},
    {"`cuDeviceGraphMemTrim`", {"graph g " + kBytes + " 1 free", "launch g", "launch g"}, {"sync", "graphtrim"}, {}},
    {"`cuDeviceGraphMemTrim`",
     {"graph g " + kBytes + " 1 leave", "launch g"},
     {"graphfree g", "sync", "graphtrim"},
     {}},
    {"exported memory, freed", {"alloc x " + kBytes, "ipcget x"}, {"free x"}, {}},
    {"exported memory, freed", {"piece x " + kBytes + " export", "export x close"}, {"unpiece x"}, {}},
    {"a cache with `idle-release`",
     {"alloc x " + kBytes},
     {"free x"},
     {"CUSLICE_ALLOCATOR=growth", "CUSLICE_IDLE_RELEASE=1h"}},
    {"a cache without it", {"alloc x " + kBytes}, {"free x"}, {"CUSLICE_ALLOCATOR=growth"}},
    {"a pool that keeps it", kKeeps, {"freeasync x", "sync"}, {}},
    {"a graph that has run", {"graph g " + kBytes + " 1 free", "launch g"}, {"sync"}, {}},
};

const std::vector<std::string> kStates{"waits", "is inside a CUDA call", "is stopped", "has ended"};

/// True where the page's table says yes. Its columns are kStates.
bool page_says_yes(const std::string& row, const std::string& state) {
    std::ifstream page(CUSLICE_TEST_SOURCES "/../../docs/sharing.md");
    for (std::string line; std::getline(page, line);) {
        if (line.rfind("| " + row + " |", 0) != 0)
            continue;
        size_t cell = 1;
        for (const std::string& one : kStates) {
            cell = line.find('|', cell) + 1;
            if (one == state)
                return line.compare(cell, 4, " yes") == 0;
        }
    }
    FAIL("docs/sharing.md has no row for " << row);
    return false;
}

/// From then on.
void let_owner(Two& two, const std::string& state) {
    if (state == "is inside a CUDA call")
        two.owner_does({"stream busy", "hold busy", "aside sync"});
    if (state == "is stopped")
        two.owner->kill(SIGSTOP);
    if (state == "has ended")
        two.owner->finish();
}

void check_owner_goes_on(Two& two, const std::string& state) {
    if (state == "has ended" || two.scope == "per process")
        return;
    if (state == "is stopped")
        two.owner->kill(SIGCONT);
    if (state == "is inside a CUDA call") {
        CHECK(two.owner->ask("letgo") == "0 1");
        CHECK(two.owner->code("joined") == kSuccess);
    }
    CHECK(two.owner->code("alloc more " + bytes(64 * kMiB)) == kOutOfMemory);
    CHECK(two.owner->code("alloc more " + bytes(64 * kMiB) + " async") == kOutOfMemory);
    CHECK(two.together() <= two.limit());
    CHECK(two.other->code("free most") == kSuccess);
    CHECK(two.owner->code("alloc more " + bytes(64 * kMiB) + " async") == kSuccess);
    CHECK(two.owner->code("alloc again " + bytes(64 * kMiB)) == kSuccess);
    CHECK(two.together() <= two.limit());
}

}  // namespace

TEST_CASE("what a process that doesn't call has given back is had by the others of its job and group") {
    const auto& scope = GENERATE(from_range(kScopes)).first;
    const auto i = GENERATE(range(size_t{0}, kKinds.size()));
    const auto& state = GENERATE(from_range(kStates));
    const Kind& kind = kKinds[i];
    const bool first_of_row = i == 0 || kind.row != kKinds[i - 1].row;
    const bool usual = scope == "job" || scope == "partition";
    if (!usual && (!first_of_row || state == "is inside a CUDA call"))
        return;
    CAPTURE(scope, kind.row, kind.takes, kind.gives_back, state);
    Two two(scope, kind.settings);
    two.owner_does(kind.takes);
    CHECK(two.held(*two.owner) >= kTaken);
    two.owner_does(kind.gives_back);
    let_owner(two, state);

    const uint64_t most = kLimit - kHeadroom - two.contexts;
    if (scope == "per process" || page_says_yes(kind.row, state)) {
        CHECK(soon([&] { return two.other_gets(most); }));
        if (scope != "per process")
            CHECK(two.together() <= two.limit());
        check_owner_goes_on(two, state);
    } else {
        CHECK(two.other->code("alloc most " + bytes(most / 2)) == kOutOfMemory);
    }
}

TEST_CASE("a process that is told to take what another one gave back may use pools and make modules there") {
    Two two("job");
    two.owner_does({"alloc x " + kBytes + " async", "freeasync x", "sync"});
    CHECK(two.other->code("alloc a " + bytes(1000 * kMiB) + " async") == kSuccess);
    CHECK(two.other->code("alloc b " + bytes(700 * kMiB) + " async") == kSuccess);
    CHECK(two.other->code("alloc c " + bytes(700 * kMiB) + " async") == kOutOfMemory);
    CHECK(two.together() <= kLimit);
}

TEST_CASE("what a process still holds, or may be about to take, is nobody else's") {
    const auto scope = GENERATE(std::string("job"), "group", "partition");
    CAPTURE(scope);
    // Two calls that load a module wait for each other in the driver.
    Two two(scope, {"CUSLICE_FAKE_INJECT=meet:cuModuleLoadData=2"});
    SECTION("what a pool keeps") {
        two.owner_does(
            {"pool default 0", "keep default " + bytes(kLimit), "alloc x " + kBytes + " async", "freeasync x", "sync"});
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == kOutOfMemory);
    }
    SECTION("managed memory, wherever the driver keeps it") {
        two.owner_does({"alloc x " + kBytes + " managed"});
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == kOutOfMemory);
    }
    SECTION("what the driver is about to take for a call under way") {
        if (scope == "partition")
            return;  // it is charged to all of them
        two.owner_does({"alloc x " + bytes(64 * kMiB) + " async"});
        two.owner_does({"aside module x " + bytes(kGiB), "freeasync x", "sync"});
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == kOutOfMemory);
        two.owner_does({"module y 8"});
        CHECK(two.owner->code("joined") == kSuccess);
    }
    SECTION("what another process of the job opened") {
        if (scope == "partition")
            return;
        two.owner_does({"alloc x " + kBytes});
        const std::string handle = split_words(two.owner->ask("ipcget x")).at(1);
        REQUIRE(two.other->code("ipcopen y " + handle) == kSuccess);
        two.owner_does({"free x"});
        two.other->let_change("free", "what was the owner's is seen to be this program's when it is refused");
        CHECK(two.other->code("alloc most " + bytes(kGiB)) == kOutOfMemory);
        CHECK(two.together() <= two.limit());
    }
    CHECK(two.together() <= two.limit());
}

}  // namespace cuslice::tests
