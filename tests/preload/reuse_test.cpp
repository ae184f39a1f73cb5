// SPDX-License-Identifier: Apache-2.0
// No block is handed out while the GPU may still use it for the one who had it before: programs that never wait before
// they free, on a fake GPU whose work is late, look at the contents of everything that they read.
#include <map>

#include "tests/catch.h"
#include "tests/policy/rounds.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

using Counts = std::map<std::string, uint64_t>;

const std::string kLive = std::to_string(64 * kMiB);

/// Runs a guest and returns the pairs of a word and a number that it printed.
Counts counts_of(const Words& words, const Words& environment) {
    const Outcome outcome = run(words, environment);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const Words pairs = split_words(outcome.out);
    Counts counts;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2)
        counts[pairs[i]] = std::stoull(pairs[i + 1]);
    return counts;
}

struct Churned {
    std::string places = "0";  // GPUs of its contexts, as guest/reuse/program.h says
    unsigned threads = 1;
    bool captures = false, peers = false, async_frees = false;
    uint64_t operations = 1, seed = 1;

    Words words(const std::string& program) const {
        return {kGuests + "/" + program,
                places,
                std::to_string(operations),
                std::to_string(seed),
                kLive,
                std::to_string(threads),
                captures ? "c"
                : peers  ? "p"
                         : "-"};
    }
    std::string ways() const {
        return std::string("-") + (captures ? "c" : "") + (peers ? "p" : "") + (async_frees ? "a" : "");
    }
    Words late(const Words& more = {}) const {
        Words all{"CUSLICE_FAKE_STREAMS=late:" + std::to_string(seed)};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
};

Counts under_cuslice(const Churned& churned, const Words& settings) {
    const Folder books;
    return counts_of(churned.words("guest_reuse"), sliced("2xt4", books.path(), churned.late(settings)));
}

/// The caching allocator without the library: see guest/reuse/cached.cpp.
Counts cached(const Churned& churned, const std::string& free, const std::string& asked, uint64_t limit) {
    const Folder books;
    Words words = churned.words("guest_reuse_cached");
    words.insert(words.end(), {free, asked, std::to_string(limit)});
    return counts_of(words, raw("2xt4", books.path(), churned.late()));
}

constexpr int kFixed = 50000;  // operations after which every mistake here has been seen

}  // namespace

TEST_CASE("the program is right: without cuslice it reads what it wrote") {
    const Folder books;
    Churned churned{.places = GENERATE("0", "001")};
    churned.threads = GENERATE(1u, 4u);
    churned.captures = churned.threads == 1;
    churned.peers = !churned.captures;
    churned.operations = static_cast<uint64_t>(rounds(kFixed, kFixed));
    CHECK(counts_of(churned.words("guest_reuse"), raw("2xt4", books.path(), churned.late())).at("wrong") == 0);
}

TEST_CASE("cached memory is not handed out while a stream may still use it", "[slow]") {
    const std::string free = GENERATE("strict", "deferred"), allocator = GENERATE("growth", "prealloc");
    // One context, two on a GPU, one on each of two GPUs, three, and captures, threads and peers; with room to spare
    // and without.
    const Churned kinds[] = {
        {"0"},
        {"00"},
        {"01"},
        {"001"},
        {"0", 1, true},
        {"001", 1, true},
        {"0", 4},
        {"001", 4},
        {"01", 1, false, true},
        {"001", 4, false, true},
    };
    const unsigned which = GENERATE(0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u);
    const Churned& kind = kinds[which];
    const std::string limit = GENERATE("2GiB", "340MiB");
    Churned churned = kind;
    churned.operations = static_cast<uint64_t>(rounds(20000, 1'000'000));
    churned.seed = which + 1;
    churned.async_frees = true;
    CAPTURE(free, allocator, kind.places, kind.threads, kind.captures, limit);
    const Counts counts =
        under_cuslice(churned, {"CUSLICE_ALLOCATOR=" + allocator, "CUSLICE_FREE=" + free, "CUSLICE_LIMIT=" + limit});
    CHECK(counts.at("wrong") == 0);
    CHECK(counts.at("frees") == counts.at("allocations"));
    CHECK(counts.at("allocations") > churned.operations / 10);
    CHECK(counts.at("looked_at") > churned.operations * 10);
    if (kind.captures)
        CHECK(counts.at("captures") > 0);
}

TEST_CASE("cached memory of a part of a GPU is not handed out while another part's stream may still use it", "[slow]") {
    const std::string free = GENERATE("strict", "deferred"), allocator = GENERATE("growth", "prealloc");
    Churned churned{.places = GENERATE("01", "001")};
    churned.threads = GENERATE(1u, 4u);
    churned.operations = static_cast<uint64_t>(rounds(20000, 1'000'000));
    CAPTURE(free, allocator, churned.places, churned.threads);
    const Counts counts =
        under_cuslice(churned, {"CUSLICE_SPLIT=0=2GiB+2GiB", "CUSLICE_ALLOCATOR=" + allocator, "CUSLICE_FREE=" + free});
    CHECK(counts.at("wrong") == 0);
    CHECK(counts.at("frees") == counts.at("allocations"));
    CHECK(counts.at("allocations") > churned.operations / 10);
    CHECK(counts.at("looked_at") > churned.operations * 10);
}

TEST_CASE("a fork while others allocate from several caches, with hardly any room: nobody waits for ever", "[slow]") {
    const std::string free = GENERATE("strict", "deferred"), allocator = GENERATE("growth", "prealloc");
    const Churned churned{.places = "001", .threads = 4, .operations = static_cast<uint64_t>(rounds(20000, 200'000))};
    const Folder books;
    Words words = churned.words("guest_reuse");
    words.push_back("forks");
    // Beside what is preallocated, in blocks of 2 MiB, there is room for what the four threads have managed.
    const Words settings{"CUSLICE_ALLOCATOR=" + allocator, "CUSLICE_FREE=" + free, "CUSLICE_LIMIT=307MiB"};
    CAPTURE(free, allocator);
    CHECK(counts_of(words, sliced("2xt4", books.path(), churned.late(settings))).at("wrong") == 0);
}

TEST_CASE("an allocator that doesn't wait for the GPU, or only for its own context, is found out", "[slow]") {
    const std::string free = GENERATE("strict", "deferred");
    const Churned churned{.places = "001", .operations = kFixed};
    CHECK(cached(churned, free, "all", 64 * kMiB).at("wrong") == 0);
    CHECK(cached(churned, free, "all", kGiB).at("wrong") == 0);
    CHECK(cached(churned, free, "none", kGiB).at("wrong") > 1000);
    // A batch is mostly old enough; strict hands the block out at once.
    if (free == "strict")
        CHECK(cached(churned, free, "own", kGiB).at("wrong") > 0);
}

TEST_CASE("deferred: at least nine in ten batches of freed blocks come back without a wait for the GPU") {
    Churned churned{.places = GENERATE("0", "001"), .operations = kFixed};
    churned.operations = static_cast<uint64_t>(rounds(200'000, 1'000'000));
    const Counts counts = cached(churned, "deferred", "all", 256 * kMiB);
    CHECK(counts.at("wrong") == 0);
    CHECK(counts.at("fences") > 100);
    CHECK(counts.at("waits") * 10 <= counts.at("fences"));
}

}  // namespace cuslice::tests
