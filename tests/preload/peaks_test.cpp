// SPDX-License-Identifier: Apache-2.0
// The most that a job's processes have held at once, as the ledger remembers it: against the books of the GPU, which
// know nothing of cuslice.
#include <signal.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;
const std::string kGpu = "1xlaptop-2g";

std::string bytes(uint64_t count) { return std::to_string(count); }

Json holders(const Folder& books) {
    const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", kGpu}, plain({"CUSLICE_FAKE_DIR=" + books.path()}));
    REQUIRE(outcome.exit_code == 0);
    return Json::parse(outcome.out)["processes"];
}

/// Two processes of one job of 1500 MiB, each with a context.
struct Pair {
    explicit Pair(const Words& more = {}) {
        Words settings{"CUSLICE_LIMIT=1500MiB", "CUSLICE_JOB=shared", "CUSLICE_HEADROOM=16MiB"};
        settings.insert(settings.end(), more.begin(), more.end());
        for (auto* one : {&a, &b}) {
            *one = std::make_unique<Guest>(Guest::route("linked"), sliced(kGpu, books.path(), settings));
            retain_device(**one);
        }
    }
    uint64_t held(Guest& guest) { return books_of(books.path(), guest.pid()).used; }
    uint64_t together() { return held(*a) + held(*b); }
    /// By `cuslice ps`, where each member says the same.
    uint64_t peak() {
        const Json now = holders(books);
        REQUIRE_FALSE(now.empty());
        for (const Json& one : now)
            CHECK(one["peak"] == now[0]["peak"]);
        return now[0]["peak"].get<uint64_t>();
    }

    Folder books;
    std::unique_ptr<Guest> a, b;
};

}  // namespace

TEST_CASE("a job's peak is what its processes held at the same time, and stays where they give back") {
    Pair pair;
    auto& [books, a, b] = pair;
    const uint64_t before = pair.together();
    CHECK(pair.peak() == before);
    REQUIRE(a->code("alloc x " + bytes(400 * kMiB)) == kSuccess);
    REQUIRE(b->code("alloc y " + bytes(200 * kMiB)) == kSuccess);
    const uint64_t most = pair.together();
    CHECK(most == before + 600 * kMiB);
    CHECK(pair.peak() == most);
    REQUIRE(a->code("free x") == kSuccess);
    CHECK(pair.peak() == most);
    // Each alone has had 500 MiB at most, and never both at once.
    REQUIRE(b->code("alloc z " + bytes(300 * kMiB)) == kSuccess);
    CHECK(pair.peak() == most);
    SECTION("what is refused is no part of it") {
        CHECK(a->code("alloc w " + bytes(1200 * kMiB)) == kOutOfMemory);
        CHECK(b->code("alloc w " + bytes(1200 * kMiB)) == kOutOfMemory);
        REQUIRE(b->code("free z") == kSuccess);
        CHECK(pair.peak() == most);
    }
    SECTION("who is killed leaves it to the others") {
        b->kill(SIGKILL);
        b.reset();
        CHECK(pair.peak() == most);
        REQUIRE(holders(books).size() == 1);
        CHECK(holders(books)[0]["together"] == pair.held(*a));
    }
    SECTION("and so does who is killed while it is at its highest") {
        REQUIRE(b->code("alloc w " + bytes(300 * kMiB)) == kSuccess);
        const uint64_t higher = pair.together();
        REQUIRE(higher > most);
        b->kill(SIGKILL);
        b.reset();
        CHECK(pair.peak() == higher);
    }
}

TEST_CASE("a job's peak can be asked for while it runs and after its end") {
    Pair pair;
    auto& [books, a, b] = pair;
    REQUIRE(a->code("alloc x " + bytes(400 * kMiB)) == kSuccess);
    const uint64_t most = pair.together();
    REQUIRE(a->code("free x") == kSuccess);
    const auto ask = [&, &folder = books](const std::string& job, const Words& more = {}) {
        Words words{kLaunch, "ps", "--fake", kGpu, "--job", job};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, plain({"CUSLICE_FAKE_DIR=" + folder.path()}));
    };
    const std::string line = "shared held at most " + std::to_string(most / kMiB) + " MiB of 1500 MiB on GPU-";
    CHECK(most % kMiB == 0);
    CHECK(ask("shared").out.starts_with(line));
    CHECK(Json::parse(ask("shared", {"--json"}).out)["peaks"][0]["ended"] == false);
    a->kill(SIGKILL);
    a.reset();
    CHECK(b->finish() == 0);
    CHECK(holders(books).empty());  // whoever looks takes the account away
    Guest next(Guest::route("linked"), sliced(kGpu, books.path(), {"CUSLICE_LIMIT=1GiB", "CUSLICE_JOB=next"}));
    retain_device(next);
    const Outcome ended = ask("shared");
    CHECK(ended.exit_code == 0);
    CHECK(ended.out.starts_with(line));
    CHECK(ended.out.ends_with("\n"));
    const Json answer = Json::parse(ask("shared", {"--json"}).out);
    CHECK(answer["job"] == "shared");
    REQUIRE(answer["peaks"].size() == 1);
    CHECK(answer["peaks"][0]["peak"] == most);
    CHECK(answer["peaks"][0]["limit"] == 1500 * kMiB);
    CHECK(answer["peaks"][0]["uid"] == geteuid());
    CHECK(answer["peaks"][0]["ended"] == true);
    const Outcome nobody = ask("share");
    CHECK(nobody.exit_code == 69);
    CHECK(nobody.out.empty());
    CHECK(nobody.err == "cuslice: ps: no ledger here remembers a job share\n");
    CHECK(ask("", {}).err == "cuslice: --job: a name is needed: cuslice ps --job NAME\n");
    CHECK(ask("shared", {"--prometheus"}).err == "cuslice: --prometheus: give it or --job, not both\n");
}

TEST_CASE("a pool that grows is in a job's peak once") {
    Pair pair;
    auto& [books, a, b] = pair;
    const uint64_t before = pair.together();
    REQUIRE(a->code("alloc x " + bytes(480 * kMiB) + " async") == kSuccess);
    CHECK(pair.peak() == pair.together());
    REQUIRE(a->code("alloc y " + bytes(320 * kMiB) + " async") == kSuccess);
    CHECK(pair.peak() == before + 800 * kMiB);
    const uint64_t most = pair.together();
    REQUIRE(a->code("freeasync x") == kSuccess);
    REQUIRE(a->code("freeasync y") == kSuccess);
    REQUIRE(a->code("sync") == kSuccess);
    REQUIRE(a->code("info") == kSuccess);
    CHECK(pair.together() == before);
    CHECK(pair.peak() == most);
}

TEST_CASE("a job's peak is within its limit where one process takes what another one gave back") {
    Pair pair;
    auto& [books, a, b] = pair;
    REQUIRE(a->code("alloc x " + bytes(700 * kMiB) + " async") == kSuccess);
    REQUIRE(a->code("freeasync x") == kSuccess);
    REQUIRE(a->code("sync") == kSuccess);
    REQUIRE(b->code("alloc y " + bytes(700 * kMiB)) == kSuccess);
    CHECK(pair.peak() <= 1500 * kMiB);
    REQUIRE(a->code("info") == kSuccess);
    CHECK(pair.peak() <= 1500 * kMiB);
}

TEST_CASE("what the driver refuses is in no job's peak") {
    // The GPU is full of what is outside cuslice.
    const Folder books;
    Guest other(Guest::route("linked"), raw(kGpu, books.path()));
    Guest guest(Guest::route("linked"),
                sliced(kGpu, books.path(), {"CUSLICE_LIMIT=1500MiB", "CUSLICE_JOB=shared", "CUSLICE_HEADROOM=16MiB"}));
    for (Guest* one : {&other, &guest})
        retain_device(*one);
    REQUIRE(other.code("alloc x " + bytes(kGiB)) == kSuccess);
    const auto peak = [&] { return holders(books).at(0)["peak"].get<uint64_t>(); };
    const uint64_t before = peak();
    CHECK(before == books_of(books.path(), guest.pid()).used);
    CHECK(guest.code("alloc x " + bytes(800 * kMiB)) == kOutOfMemory);
    CHECK(guest.complaints().empty());  // it was not the limit
    CHECK(peak() == before);
    REQUIRE(guest.code("alloc y " + bytes(kMiB)) == kSuccess);
    REQUIRE(guest.code("free y") == kSuccess);
    CHECK(peak() == before + kMiB);
}

TEST_CASE("the summary of a process says what all of its job have held, where that is more") {
    Pair pair({"CUSLICE_SUMMARY=yes"});
    auto& [books, a, b] = pair;
    REQUIRE(a->code("alloc x " + bytes(400 * kMiB)) == kSuccess);
    REQUIRE(b->code("alloc y " + bytes(200 * kMiB)) == kSuccess);
    CHECK(a->finish() == 0);
    CHECK(b->finish() == 0);
    for (Guest* one : {&*a, &*b}) {
        const Words said = one->complaints();
        REQUIRE(said.size() == 1);
        CAPTURE(said[0]);
        CHECK(said[0].find("; all processes of the job held at most 1200.0 MiB at once") != std::string::npos);
    }
    Guest alone(Guest::route("linked"),
                sliced(kGpu, books.path(), {"CUSLICE_LIMIT=1500MiB", "CUSLICE_SUMMARY=yes", "CUSLICE_HEADROOM=16MiB"}));
    retain_device(alone);
    CHECK(alone.finish() == 0);
    REQUIRE(alone.complaints().size() == 1);
    CHECK(alone.complaints()[0].find("of the job") == std::string::npos);
}

}  // namespace cuslice::tests
