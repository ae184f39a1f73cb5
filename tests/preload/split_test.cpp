// SPDX-License-Identifier: Apache-2.0
// One GPU as several: each with its limit and its identity, one context for all of them beneath.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/lookups.h"
#include "tests/preload/parts.h"
#include "tests/preload/places.h"

namespace cuslice::tests {

TEST_CASE("a GPU that is split is as many as asked for, each with an identity and a share of its own") {
    for (const unsigned count : {2u, 3u, 4u}) {
        Parts parts(count);
        CHECK(parts.guest.ask("count") == "0 " + text(count));
        std::set<std::string> uuids;
        for (unsigned i = 0; i < count; i++) {
            uuids.insert(split_words(parts.guest.ask("uuid " + text(i))).at(1));
            CHECK(parts.guest.number("total " + text(i)) == parts.limit());
        }
        CHECK(uuids.size() == count);
        CHECK(parts.guest.code("total " + text(count)) == kInvalidDevice);
        CHECK(parts.guest.code("uuid " + text(count)) == kInvalidDevice);
        CHECK(parts.guest.code("retain " + text(count)) == kInvalidDevice);
        // They are the same in every process.
        Parts others(count);
        for (unsigned i = 0; i < count; i++)
            CHECK(uuids.count(split_words(others.guest.ask("uuid " + text(i))).at(1)) == 1);
        CHECK(parts.guest.finish() == 0);
        CHECK(parts.guest.complaints().empty());
    }
}

TEST_CASE("each part allocates to its own limit and no further") {
    Parts parts(3);
    parts.retain_all();
    const uint64_t block = 8 * kMiB;
    std::vector<uint64_t> before, free;
    for (unsigned i = 0; i < 3; i++) {
        before.push_back(parts.used(i));
        free.push_back(parts.guest.number("info"));
    }
    for (unsigned i = 0; i < 3; i++) {
        REQUIRE(parts.guest.code("current " + text(i)) == kSuccess);
        const Words answer = split_words(parts.guest.ask("fill " + text(block)));
        CHECK(answer == Words{"2", text(free[i] / block)});
        // The others have what they had.
        for (unsigned k = 0; k < 3; k++)
            CHECK(parts.used(k) == before[k] + (k <= i ? free[k] / block * block : 0));
        CHECK(parts.held().used == parts.used_by_all());
        CHECK(parts.held().contexts == 1);
    }
    CHECK(parts.guest.code("freeall") == kSuccess);
    for (unsigned i = 0; i < 3; i++)
        CHECK(parts.used(i) == before[i]);
    CHECK(parts.held().used == parts.used_by_all());
    CHECK(parts.guest.finish() == 0);
    CHECK(parts.guest.complaints().size() == 3);
}

TEST_CASE("parts that are more than their GPU together are refused by the GPU's limit, which the message names") {
    const Folder books;
    const Words settings{"CUSLICE_LIMIT=1200MiB", "CUSLICE_SPLIT=0=1GiB+1GiB", "CUSLICE_OVERSUBSCRIBE=yes",
                         "CUSLICE_HEADROOM=16MiB"};
    Guest guest(Guest::route("linked"), sliced(kGpu, books.path(), settings));
    retain_device(guest);
    REQUIRE(guest.code("retain 1") == kSuccess);
    REQUIRE(guest.code("current 0") == kSuccess);
    REQUIRE(guest.code("alloc first " + text(600 * kMiB)) == kSuccess);
    REQUIRE(guest.code("current 1") == kSuccess);
    const uint64_t free = guest.number("info");
    REQUIRE(free < 400 * kMiB);
    // Within the part, and not within the GPU; and the refusal leaves nothing behind.
    for (int i = 0; i < 3; i++)
        CHECK(guest.code("alloc more " + text(400 * kMiB)) == kOutOfMemory);
    CHECK(guest.number("info") == free);
    CHECK(books_of(books.path(), guest.pid()).peak <= 1200 * kMiB);
    CHECK(guest.code("alloc rest " + text(free)) == kSuccess);
    CHECK(books_of(books.path(), guest.pid()).used <= 1200 * kMiB);
    CHECK(guest.finish() == 0);
    const Words said = guest.complaints();
    REQUIRE(said.size() == 1);
    CAPTURE(said[0]);
    CHECK(said[0].find(" of the 1200.0 MiB limit of the whole GPU are in use by this partition (") !=
          std::string::npos);
    CHECK(said[0].find("The limit is from CUSLICE_LIMIT. ") != std::string::npos);
}

TEST_CASE("a stream that is given no priority has the part's, whatever made its context") {
    const Folder books;
    Guest guest(Guest::route("linked"),
                sliced(kGpu, books.path(), Words{"CUSLICE_SPLIT=0=512MiB@1:-1+512MiB@0+512MiB@2:-5"}));
    REQUIRE(guest.code("init") == kSuccess);
    const auto priority_of = [&](const std::string& stream) {
        REQUIRE(guest.code("stream " + stream) == kSuccess);
        return guest.ask("priority " + split_words(stream)[0]);
    };
    for (const auto& [part, own] : {std::pair{"0", "0 0"}, {"1", "0 -1"}, {"2", "0 -5"}}) {
        CAPTURE(part);
        REQUIRE(guest.code(std::string("retain ") + part) == kSuccess);
        REQUIRE(guest.code(std::string("current ") + part) == kSuccess);
        CHECK(priority_of("plain") == own);
        CHECK(priority_of("named 0") == "0 0");
        CHECK(priority_of("urgent -3") == "0 -3");
        CHECK(guest.ask("priority") == "0 0");
        REQUIRE(guest.code(std::string("create own ") + part) == kSuccess);
        CHECK(priority_of("other") == own);
        REQUIRE(guest.code("destroy own") == kSuccess);
    }
    CHECK(guest.finish() == 0);
    CHECK(guest.complaints().empty());
}

TEST_CASE("a part's priority that its GPU lacks is refused with the part's contexts, and the others work") {
    const Folder books;
    const Words settings{"CUSLICE_SPLIT=0=512MiB:-6+512MiB+rest:1"};
    Guest guest(Guest::route("linked"), sliced(kGpu, books.path(), settings));
    REQUIRE(guest.code("init") == kSuccess);
    for (const char* first : {"retain 0", "create own 0", "retain 2", "retain 0"})
        CHECK(guest.code(first) == kInvalidValue);
    CHECK(books_of(books.path(), guest.pid()).contexts == 0);
    CHECK(books_of(books.path(), guest.pid()).used == 0);
    REQUIRE(guest.code("retain 1") == kSuccess);
    REQUIRE(guest.code("current 1") == kSuccess);
    CHECK(guest.code("retain 0") == kInvalidValue);
    CHECK(guest.code("alloc some " + text(kMiB)) == kSuccess);
    CHECK(guest.finish() == 0);
    const std::string line = "cuslice: CUSLICE_SPLIT: 0=512MiB:-6+512MiB+rest:1: the GPU has no stream priority ";
    const std::string has = ": it has 0 (the least urgent) to -5 (the most urgent)";
    CHECK(guest.complaints() == Words{line + "-6" + has, line + "1" + has});
}

TEST_CASE("however many contexts there are, the GPU has one, and none after the last of them") {
    Parts parts(4);
    CHECK(parts.held().contexts == 0);
    parts.retain_all();
    for (unsigned i = 0; i < 4; i++)
        for (const char* name : {"a", "b"})
            REQUIRE(parts.guest.code("create " + (name + text(i)) + " " + text(i)) == kSuccess);
    CHECK(parts.held().contexts == 1);
    for (unsigned i = 0; i < 4; i++) {
        REQUIRE(parts.guest.code("destroy a" + text(i)) == kSuccess);
        CHECK(parts.held().contexts == 1);
        REQUIRE(parts.guest.code("release " + text(i)) == kSuccess);
        CHECK(parts.held().contexts == 1);
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK(parts.held().contexts == 1);
        REQUIRE(parts.guest.code("destroy b" + text(i)) == kSuccess);
    }
    CHECK(parts.held().contexts == 0);
    CHECK(parts.held().used == 0);
    REQUIRE(parts.guest.code("retain 2") == kSuccess);
    CHECK(parts.held().contexts == 1);
    // All partitions are charged alike for the driver's own memory.
    CHECK(parts.used(2) == parts.held().used / 4);
    REQUIRE(parts.guest.code("retain 0") == kSuccess);
    CHECK(parts.used(0) == parts.held().used / 4);
}

TEST_CASE("a part's default pool is there again after the GPU's last context, and holds nothing") {
    const auto [begin, end] = GENERATE(std::pair{"retain 0", "release 0"}, std::pair{"create 0 0", "destroy 0"});
    CAPTURE(end);
    Parts parts(2);
    for (int round = 0; round < 3; round++) {
        CAPTURE(round);
        REQUIRE(parts.guest.code(begin) == kSuccess);
        CHECK(parts.guest.number("info") == parts.limit() - kHeadroom - parts.held().used / 2);
        REQUIRE(parts.guest.code("pool default 0") == kSuccess);
        REQUIRE(parts.guest.code("keep default " + text(~0ull)) == kSuccess);
        REQUIRE(parts.guest.code("alloc a " + text(500 * kMiB) + " async") == kSuccess);
        REQUIRE(parts.guest.code("freeasync a") == kSuccess);
        REQUIRE(parts.guest.code("sync") == kSuccess);
        REQUIRE(parts.guest.code(end) == kSuccess);
    }
}

TEST_CASE("the end of a context frees what was in it, and nothing of the others") {
    Parts parts(3);
    parts.retain_all();
    REQUIRE(parts.guest.code("create own 1") == kSuccess);
    const uint64_t context = parts.held().used;
    for (const char* name : {"own", "0", "1", "2"}) {
        REQUIRE(parts.guest.code(std::string("current ") + name) == kSuccess);
        REQUIRE(parts.guest.code(std::string("alloc in") + name + " " + text(32 * kMiB)) == kSuccess);
        REQUIRE(parts.guest.code(std::string("put in") + name + " 77") == kSuccess);
        REQUIRE(parts.guest.code(std::string("module of") + name + " " + text(kMiB)) == kSuccess);
        REQUIRE(parts.guest.code(std::string("array of") + name + " 512 512 0") == kSuccess);
    }
    const uint64_t full = parts.held().used;
    CHECK(full == parts.used_by_all());
    const auto still = [&](const std::string& name, bool alive) {
        REQUIRE(parts.guest.code("current 0") == kSuccess);
        const std::string look = parts.guest.ask("look in" + name);
        CHECK((look == "0 77") == alive);
    };
    REQUIRE(parts.guest.code("destroy own") == kSuccess);
    still("own", false);
    for (const char* name : {"0", "1", "2"})
        still(name, true);
    CHECK(parts.held().used == full - (full - context) / 4);
    CHECK(parts.held().used == parts.used_by_all());

    REQUIRE(parts.guest.code("reset 1") == kSuccess);
    still("1", false);
    for (const char* name : {"0", "2"})
        still(name, true);
    CHECK(parts.held().used == full - (full - context) / 2);
    CHECK(parts.held().contexts == 1);
    // It is retained still, and begins anew with the next retain.
    CHECK(parts.guest.code("current 1") == kInvalidContext);
    REQUIRE(parts.guest.code("retain 1") == kSuccess);
    CHECK(parts.held().used == parts.used_by_all());
    CHECK(parts.guest.code("alloc new " + text(kMiB)) == kSuccess);
    REQUIRE(parts.guest.code("release 1") == kSuccess);
    CHECK(parts.guest.code("current 1") == kSuccess);
    REQUIRE(parts.guest.code("release 1") == kSuccess);
    CHECK(parts.guest.code("current 1") == kInvalidContext);
    CHECK(parts.guest.code("release 1") == kInvalidContext);

    REQUIRE(parts.guest.code("release 0") == kSuccess);
    REQUIRE(parts.guest.code("current 2") == kSuccess);
    CHECK(parts.guest.ask("look in2") == "0 77");
    REQUIRE(parts.guest.code("release 2") == kSuccess);
    CHECK(parts.held().used == 0);
    CHECK(parts.held().contexts == 0);
}

TEST_CASE("a reset of the only context in use is the driver's, and it begins anew") {
    Parts parts(2);
    REQUIRE(parts.guest.code("retain 1") == kSuccess);
    const uint64_t context = parts.held().used;
    REQUIRE(parts.guest.code("alloc x " + text(kMiB)) == kSuccess);
    REQUIRE(parts.guest.code("reset 1") == kSuccess);
    CHECK(parts.held().contexts == 0);
    CHECK(parts.held().used == 0);
    CHECK(parts.guest.code("current 1") == kInvalidContext);
    REQUIRE(parts.guest.code("retain 1") == kSuccess);
    CHECK(parts.held().contexts == 1);
    CHECK(parts.held().used == context);
    CHECK(parts.guest.code("alloc x " + text(kMiB)) == kSuccess);
    CHECK(parts.guest.code("release 1") == kSuccess);
    CHECK(parts.held().contexts == 1);
    CHECK(parts.guest.code("release 1") == kSuccess);
    CHECK(parts.held().contexts == 0);
}

TEST_CASE("one that is retained still after its reset keeps nothing of the GPU") {
    Parts parts(2);
    REQUIRE(parts.guest.code("retain 1") == kSuccess);
    REQUIRE(parts.guest.code("create own 0") == kSuccess);
    REQUIRE(parts.guest.code("alloc x " + text(kMiB)) == kSuccess);
    REQUIRE(parts.guest.code("reset 1") == kSuccess);
    CHECK(parts.held().contexts == 1);
    REQUIRE(parts.guest.code("destroy own") == kSuccess);
    CHECK(parts.held().contexts == 0);
    CHECK(parts.held().used == 0);
    CHECK(parts.guest.code("release 1") == kSuccess);
    CHECK(parts.guest.code("release 1") == kInvalidContext);
}

TEST_CASE("contexts that several threads begin and end leave none") {
    Parts parts(3);
    for (unsigned i = 0; i < 3; i++)
        CHECK(parts.guest.ask("lifetimes 4 300 3") == "0 0");
    CHECK(parts.held().contexts == 0);
    CHECK(parts.held().used == 0);
    parts.retain_all();
    CHECK(parts.held().contexts == 1);
    CHECK(parts.held().used == parts.used_by_all());
}

TEST_CASE("a created context's memory goes back to its part's cache's GPU, and the others' stays") {
    for (const Words& settings :
         {Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"}}) {
        Parts parts(2, settings);
        parts.retain_all();
        const uint64_t before = parts.held().used;
        REQUIRE(parts.guest.code("create own 1") == kSuccess);
        REQUIRE(parts.guest.code("alloc x " + text(64 * kMiB)) == kSuccess);
        REQUIRE(parts.guest.code("current 1") == kSuccess);
        REQUIRE(parts.guest.code("alloc y " + text(64 * kMiB)) == kSuccess);
        REQUIRE(parts.guest.code("put y 5") == kSuccess);
        const uint64_t both = parts.held().used;
        CHECK(both >= before + 128 * kMiB);
        REQUIRE(parts.guest.code("destroy own") == kSuccess);
        CHECK(parts.held().used == before + (both - before) / 2);
        CHECK(parts.guest.ask("look y") == "0 5");
        CHECK(parts.guest.code("look x") != kSuccess);
    }
}

TEST_CASE("beside a GPU that is whole, parts are counted before it and have one context") {
    Folder books;
    Guest guest(Guest::route("linked"), sliced("2xlaptop-2g", books.path(), {"CUSLICE_SPLIT=0=2"}));
    REQUIRE(guest.code("init") == kSuccess);
    CHECK(guest.ask("count") == "0 3");
    const uint64_t part = Parts::total() / 2 / kPage * kPage;
    CHECK(guest.number("total 0") == part);
    CHECK(guest.number("total 1") == part);
    CHECK(guest.number("total 2") == Parts::total());
    const std::string whole = split_words(guest.ask("uuid 2")).at(1);
    for (const char* name : {"0", "1", "2"})
        REQUIRE(guest.code(std::string("retain ") + name) == kSuccess);
    REQUIRE(guest.code("alloc x " + text(kGiB)) == kSuccess);
    CHECK(books_of(books.path(), guest.pid(), whole).used > kGiB);
    CHECK(books_of(books.path(), guest.pid(), whole).contexts == 1);
    for (const char* name : {"0", "1", "2"})
        REQUIRE(guest.code(std::string("release ") + name) == kSuccess);
    CHECK(books_of(books.path(), guest.pid(), whole).used == 0);
}

TEST_CASE("a fork before the start and one after it: parts are the same in the child") {
    Parts parts(3, {}, Guest::route("dlopen=libcuda.so.1"));
    parts.retain_all();
    Words answer = split_words(parts.guest.ask("forks 20 2"));
    CHECK(answer == Words{"0", "0"});

    Folder books;
    Guest child(Guest::route("dlopen=libcuda.so.1"), sliced(kGpu, books.path(), Parts::with(3, {})));
    REQUIRE(child.code("fork") == kSuccess);
    REQUIRE(child.code("init") == kSuccess);
    CHECK(child.ask("count") == "0 3");
    for (unsigned i = 0; i < 3; i++)
        REQUIRE(child.code("retain " + text(i)) == kSuccess);
    CHECK(child.code("alloc x " + text(kMiB)) == kSuccess);
    CHECK(books_of(books.path(), child.pid()).contexts == 1);
}

TEST_CASE("threads allocate and free on every part at once") {
    for (const Words& settings :
         {Words{}, Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"}}) {
        Parts parts(3, settings);
        parts.retain_all();
        for (unsigned i = 0; i < 3; i++) {
            REQUIRE(parts.guest.code("current " + text(i)) == kSuccess);
            CHECK(parts.guest.ask("storm 4 2000 " + text(256 << 10)) == "0 0");
        }
        CHECK(parts.held().contexts == 1);
        CHECK(parts.held().used <= parts.total());
        CHECK(parts.guest.finish() == 0);
        CHECK(parts.guest.complaints().empty());
    }
}

TEST_CASE("each partition has a cache of its own, in every mode") {
    for (const Words& settings : {Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_ALLOCATOR=prealloc"},
                                  Words{"CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"}}) {
        INFO(settings.back());
        Parts parts(3, settings);
        parts.retain_all();
        const uint64_t context = parts.used_by_all();
        const uint64_t block = 8 * kMiB;
        std::vector<uint64_t> free;
        for (unsigned i = 0; i < 3; i++) {
            REQUIRE(parts.guest.code("current " + text(i)) == kSuccess);
            free.push_back(parts.guest.number("info"));
        }
        for (unsigned i = 0; i < 3; i++) {
            REQUIRE(parts.guest.code("current " + text(i)) == kSuccess);
            REQUIRE(parts.guest.code("alloc keep" + text(i) + " " + text(block)) == kSuccess);
            REQUIRE(parts.guest.code("put keep" + text(i) + " " + text(100 + i)) == kSuccess);
            const Words answer = split_words(parts.guest.ask("fill " + text(block)));
            CHECK(answer.at(0) == "2");
            CHECK(std::stoull(answer.at(1)) + 1 <= free[i] / block);
            CHECK(std::stoull(answer.at(1)) + 8 >= free[i] / block);  // segments don't fit to the last page
            for (unsigned k = i + 1; k < 3; k++) {
                REQUIRE(parts.guest.code("current " + text(k)) == kSuccess);
                CHECK(parts.guest.number("info") == free[k]);
            }
        }
        CHECK(parts.held().used <= 3 * parts.limit());
        CHECK(parts.held().contexts == 1);
        REQUIRE(parts.guest.code("current 0") == kSuccess);
        // A reset takes one cache with it, and leaves the others'.
        REQUIRE(parts.guest.code("reset 1") == kSuccess);
        for (unsigned i : {0u, 2u})
            CHECK(parts.guest.ask("look keep" + text(i)) == "0 " + text(100 + i));
        CHECK(parts.guest.code("look keep1") != kSuccess);
        CHECK(parts.held().used <= 2 * parts.limit() + context / 3);
        REQUIRE(parts.guest.code("retain 1") == kSuccess);
        CHECK(parts.guest.code("alloc again " + text(block)) == kSuccess);
        for (const char* part : {"1", "1", "0", "2"})
            CHECK(parts.guest.code(std::string("release ") + part) == kSuccess);
        CHECK(parts.held().contexts == 0);
        CHECK(parts.held().used == 0);
    }
}

TEST_CASE("linked, by dlsym and by cuGetProcAddress it is the same view") {
    Words first;
    for (const Words& route : {Guest::route("linked"), Guest::route("dlopen=libcuda.so.1"), Guest::route("v1"),
                               Guest::route("v2"), Guest::route("flag2")}) {
        INFO(route.back());
        Parts parts(3, {}, route);
        Words seen{parts.guest.ask("count")};
        for (const char* part : {"0", "1", "2", "3"}) {
            seen.push_back(parts.guest.ask(std::string("uuid ") + part));
            seen.push_back(parts.guest.ask(std::string("total ") + part));
            seen.push_back(parts.guest.ask(std::string("retain ") + part));
        }
        REQUIRE(parts.guest.code("current 2") == kSuccess);
        seen.push_back(text(parts.guest.code("alloc x " + text(kMiB))));
        seen.push_back(parts.guest.ask("reset 2"));
        seen.push_back(text(parts.guest.code("current 2")));
        CHECK(parts.held().contexts == 1);
        if (first.empty())
            first = seen;
        CHECK(seen == first);
    }
}

TEST_CASE("copies between parts arrive, by every call that copies from GPU to GPU") {
    // split_conformance_test.cpp only compares these copies: here they have to succeed.
    Folder books;
    const Outcome outcome =
        run({kGuests + "/guest_conformance", "peer copies"}, sliced(kGpu, books.path(), {"CUSLICE_SPLIT=0=2"}));
    REQUIRE(outcome.exit_code == 0);
    unsigned copied = 0;
    for (const std::string& line : split_lines(outcome.out)) {
        CHECK(line.find("not copied") == std::string::npos);
        copied += line.rfind(" = 0 copied") != std::string::npos;
    }
    CHECK(copied == 36);
}

TEST_CASE("a list of GPUs that leaves none is answered as the driver answers it") {
    for (const char* list : {"", "-1", "0,0", "7", "1,1", "x"}) {
        CAPTURE(list);
        const std::string visible = std::string("CUDA_VISIBLE_DEVICES=") + list;
        const Folder books;
        // Natively, on a machine of two GPUs.
        Guest native(Guest::route("linked"), raw("2xlaptop-2g", books.path(), {visible}));
        Guest split(Guest::route("linked"), sliced(kGpu, books.path(), {"CUSLICE_SPLIT=0=2", visible}));
        const int answer = native.code("init");
        CHECK((answer == kNoDevice || answer == kInvalidDevice));
        CHECK(split.code("init") == answer);
        CHECK(split.code("init") == answer);
        CHECK(split.complaints().empty());
    }
}

TEST_CASE("without a split what is translated where there is one is the driver's own") {
    std::set<std::string> translated;
    std::ifstream list(CUSLICE_TEST_FUNCTIONS);
    for (std::string line; std::getline(list, line);) {
        const size_t start = line.find("(cu");
        if (line.rfind("CUSLICE_FUNCTION(", 0) == 0 && line.find(", none, ") == std::string::npos)
            translated.insert(line.substr(start + 1, line.find(',', start) - start - 1));
    }
    for (const std::string& hooked : hooked_symbols())
        translated.erase(hooked);
    CHECK(translated.size() > 80);

    std::vector<LookUp> look_ups = of_typedefs();
    const auto asks_for_itself = [](const LookUp& look_up) { return look_up.name.rfind("cuGetProcAddress", 0) == 0; };
    look_ups.erase(std::remove_if(look_ups.begin(), look_ups.end(), asks_for_itself), look_ups.end());
    Folder books;
    const std::vector<Answer> own = ask(look_ups, raw(kGpu, books.path()));
    const std::vector<Answer> limited = ask(look_ups, sliced(kGpu, books.path(), {"CUSLICE_LIMIT=1GiB"}));
    const std::vector<Answer> split = ask(look_ups, sliced(kGpu, books.path(), {"CUSLICE_SPLIT=0=2"}));
    std::set<std::string> seen;
    for (size_t i = 0; i < look_ups.size(); i++) {
        if (!translated.count(own[i].v2_pointer.symbol))
            continue;
        INFO(look_ups[i].text());
        seen.insert(own[i].v2_pointer.symbol);
        CHECK(limited[i].v1_pointer == own[i].v1_pointer);
        CHECK(limited[i].v2_pointer == own[i].v2_pointer);
        CHECK(split[i].v2_pointer.file == "libcuslice.so");
        CHECK(split[i].v1_pointer == split[i].v2_pointer);
        CHECK(split[i].v2 == own[i].v2);
        CHECK(split[i].status == own[i].status);
    }
    std::printf("  %zu translated functions without a hook, %zu of them looked up\n", translated.size(), seen.size());
    CHECK(seen.size() > 80);
}

TEST_CASE("a part keeps room for the driver in every mode, also where nothing limits the GPU") {
    const std::string mode = GENERATE("direct", "growth", "prealloc");
    INFO(mode);
    Folder books;
    Guest guest(Guest::route("linked"),
                sliced("1xt4", books.path(), {"CUSLICE_SPLIT=0=2GiB+1536MiB", "CUSLICE_ALLOCATOR=" + mode}));
    REQUIRE(guest.code("init") == kSuccess);
    for (const char* part : {"0", "1"}) {
        REQUIRE(guest.code(std::string("retain ") + part) == kSuccess);
        CHECK(guest.number("info", 1) <= guest.number("info", 2) - (2 << 20));
    }
}

}  // namespace cuslice::tests
