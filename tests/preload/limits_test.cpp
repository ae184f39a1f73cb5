// SPDX-License-Identifier: Apache-2.0
// The limit: by bytes and by fraction, for all GPUs and each its own, for two processes at once, whatever the order of
// the GPUs; and what a program is shown of it.
#include <algorithm>

#include "policy/budget/headroom.h"
#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

std::string bytes(uint64_t count) { return std::to_string(count); }

// A guest with a context on each of its GPUs.
std::unique_ptr<Guest> start(const std::string& fake, const Folder& books, const Words& settings, unsigned gpus) {
    auto guest = std::make_unique<Guest>(Guest::route("linked"), sliced(fake, books.path(), settings));
    REQUIRE(guest->code("init") == kSuccess);
    REQUIRE(guest->number("count") == gpus);
    for (unsigned i = 0; i < gpus; ++i)
        REQUIRE(guest->code("retain " + std::to_string(i)) == kSuccess);
    return guest;
}

std::string uuid(Guest& guest, unsigned ordinal) {
    return split_words(guest.ask("uuid " + std::to_string(ordinal))).at(1);
}

// Takes all that one GPU gives, in small blocks.
Held fill(Guest& guest, const Folder& books, unsigned ordinal, uint64_t block = 32 * kMiB) {
    REQUIRE(guest.code("current " + std::to_string(ordinal)) == kSuccess);
    REQUIRE(guest.code("fill " + bytes(block)) == kOutOfMemory);
    return books_of(books.path(), guest.pid(), uuid(guest, ordinal));
}

// Full, but for headroom and less than one block.
void check_full(const Held& held, uint64_t limit, uint64_t context, uint64_t block = 32 * kMiB) {
    CHECK(held.peak <= limit);
    CHECK(held.used + derived_headroom(context) + block > limit);
}

TEST_CASE("two processes at fraction 0.4 share one GPU, each within 40 percent") {
    const Folder books;
    const Words settings{"CUSLICE_FRACTION=0.4"};
    auto first = start("1xt4", books, settings, 1), second = start("1xt4", books, settings, 1);
    const uint64_t limit = first->number("total 0");
    Guest plain_guest(Guest::route("linked"), raw("1xt4", books.path()));
    REQUIRE(plain_guest.code("init") == kSuccess);
    const uint64_t total = plain_guest.number("total 0");
    CHECK(limit <= total * 4 / 10);
    CHECK(limit + kMiB > total * 4 / 10);
    // Turn by turn, so that each is refused while the other holds.
    const uint64_t context = books_of(books.path(), first->pid()).used;
    const Held one = fill(*first, books, 0, 64 * kMiB), two = fill(*second, books, 0, 64 * kMiB);
    check_full(one, limit, context, 64 * kMiB);
    check_full(two, limit, context, 64 * kMiB);
    CHECK(one.used + two.used <= total);
    // A third of them finds the GPU nearly full: the driver itself refuses, and says so by its own error.
    Guest third(Guest::route("linked"), sliced("1xt4", books.path(), settings));
    retain_device(third);
    CHECK(third.code("fill " + bytes(64 * kMiB)) == kOutOfMemory);
    CHECK(third.number("info") < 64 * kMiB);  // free is never more than is physically free
    first->ask("freeall");
    CHECK(third.code("alloc again " + bytes(64 * kMiB)) == kSuccess);
}

// GPU i of the list has the i-th limit, whatever ordinal it has in the program.
void check_each(const std::string& fake, const Words& settings, const std::vector<uint64_t>& limits_by_ordinal) {
    const Folder books;
    auto guest = start(fake, books, settings, static_cast<unsigned>(limits_by_ordinal.size()));
    for (unsigned i = 0; i < limits_by_ordinal.size(); ++i) {
        CAPTURE(fake, settings, i);
        CHECK(guest->number("total " + std::to_string(i)) == limits_by_ordinal[i]);
        const uint64_t context = books_of(books.path(), guest->pid(), uuid(*guest, i)).used;
        const Held held = fill(*guest, books, i);
        check_full(held, limits_by_ordinal[i], context);
    }
}

// CUDA's GPU 0 is the fastest by default; the settings count GPUs by PCI id, as nvidia-smi does.
TEST_CASE("each GPU has its own limit, also when CUDA counts them in another order") {
    const uint64_t four = 4 * kGiB, one = kGiB;
    const std::string two = "CUSLICE_LIMIT=0=4GiB,1=1GiB";
    check_each("2xa100-40g", {two}, {four, one});
    check_each("2xa100-40g", {two, "CUDA_VISIBLE_DEVICES=1,0"}, {one, four});
    check_each("2xa100-40g", {two, "CUDA_VISIBLE_DEVICES=1"}, {one});
    // A T4 first on the bus, an A100 second: the A100 is the faster one.
    check_each("1xt4,1xa100-40g", {two}, {one, four});
    check_each("1xt4,1xa100-40g", {two, "CUDA_DEVICE_ORDER=FASTEST_FIRST"}, {one, four});
    check_each("1xt4,1xa100-40g", {two, "CUDA_DEVICE_ORDER=PCI_BUS_ID"}, {four, one});
    check_each("1xt4,1xa100-40g", {two, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1,0"}, {one, four});
    check_each("1xt4,1xa100-40g", {two, "CUDA_VISIBLE_DEVICES=0"}, {one});
}

TEST_CASE("a fraction for a GPU by its index, and one by its UUID") {
    const Folder books;
    Guest watcher(Guest::route("linked"), raw("2xa100-40g", books.path(), {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
    REQUIRE(watcher.code("init") == kSuccess);
    const uint64_t total = watcher.number("total 0");
    const std::string first = uuid(watcher, 0), second = uuid(watcher, 1);
    for (const size_t length : {second.size(), size_t{12}}) {
        const std::string setting = "CUSLICE_FRACTION=0=0.4," + second.substr(0, length) + "=0.25";
        const auto share = [&](double fraction) {
            return static_cast<uint64_t>(static_cast<double>(total) * fraction);
        };
        const Words settings{setting, "CUDA_DEVICE_ORDER=PCI_BUS_ID"};
        auto guest = start("2xa100-40g", books, settings, 2);
        CAPTURE(setting);
        CHECK(guest->number("total 0") / kMiB == share(0.4) / kMiB);
        CHECK(guest->number("total 1") / kMiB == share(0.25) / kMiB);
        auto turned = start("2xa100-40g", books, {setting, "CUDA_VISIBLE_DEVICES=" + second + "," + first}, 2);
        CHECK(turned->number("total 0") / kMiB == share(0.25) / kMiB);
        CHECK(turned->number("total 1") / kMiB == share(0.4) / kMiB);
    }
}

TEST_CASE("a GPU without a setting of its own is not limited") {
    const Folder books;
    auto guest = start("2xa100-40g", books, {"CUSLICE_LIMIT=1=1GiB", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}, 2);
    CHECK(guest->number("total 1") == kGiB);
    CHECK(guest->number("total 0") > 30 * kGiB);
    CHECK(guest->code("current 0") == kSuccess);
    CHECK(guest->code("alloc a " + bytes(20 * kGiB)) == kSuccess);
}

TEST_CASE("a limit above what the GPU has is the whole GPU") {
    const Folder books;
    auto guest = start("1xlaptop-2g", books, {"CUSLICE_LIMIT=64GiB"}, 1);
    CHECK(guest->number("total 0") == 2002 * kMiB);
    CHECK(guest->number("info", 2) == 2002 * kMiB);
}

TEST_CASE("total and free show the slice, in the present and the old forms") {
    const Folder books;
    auto guest = start("1xlaptop-2g", books, {"CUSLICE_LIMIT=1024MiB"}, 1);
    CHECK(guest->number("total 0") == kGiB);
    CHECK(guest->number("total32 0") == kGiB);
    const uint64_t free = guest->number("info");
    CHECK(guest->number("info", 2) == kGiB);
    CHECK(guest->number("info32") <= free);
    CHECK(guest->number("info32", 2) <= kGiB);
    // The bytes shown as free can be allocated, to the last unit, and not one more.
    CHECK(guest->code("alloc all " + bytes(free)) == kSuccess);
    CHECK(guest->number("info") == 0);
    CHECK(guest->code("alloc more 1") == kOutOfMemory);
    CHECK(guest->code("free all") == kSuccess);
    CHECK(guest->number("info") == free);
    CHECK(guest->code("alloc all " + bytes(free + 1)) == kOutOfMemory);
    CHECK(guest->code("alloc all " + bytes(free)) == kSuccess);
    const Held held = books_of(books.path(), guest->pid());
    CHECK(held.peak <= kGiB);
}

TEST_CASE("managed memory, which a GPU may have more of than it has room for, can't be more than the slice") {
    const Folder books;
    const std::string more = "alloc a " + bytes(20 * kGiB) + " managed";  // of 14.8
    Guest plain(Guest::route("linked"), raw("1xt4", books.path()));
    retain_device(plain);
    REQUIRE(plain.code(more) == kSuccess);
    REQUIRE(plain.code("free a") == kSuccess);
    for (const char* setting : {"CUSLICE_FRACTION=1.0", "CUSLICE_LIMIT=4GiB", "CUSLICE_SPLIT=0=2"}) {
        CAPTURE(setting);
        auto guest = start("1xt4", books, {setting}, std::string(setting).find("SPLIT") == std::string::npos ? 1 : 2);
        REQUIRE(guest->code("current 0") == kSuccess);
        const uint64_t limit = guest->number("total 0");
        CHECK(guest->code(more) == kOutOfMemory);
        CHECK(guest->code("alloc b " + bytes(2 * kGiB) + " managed") == kSuccess);
        CHECK(guest->code("alloc c " + bytes(limit - 2 * kGiB) + " managed") == kOutOfMemory);
        CHECK(guest->code("alloc d " + bytes(limit - 2 * kGiB)) == kOutOfMemory);
        CHECK(guest->number("info") < limit - 2 * kGiB);
        CHECK(books_of(books.path(), guest->pid()).peak <= limit);
    }
}

TEST_CASE("a refusal is one line that says what was asked, used, allowed and held; the same again has none") {
    const Folder books;
    auto guest = start("1xlaptop-2g", books, {"CUSLICE_LIMIT=1024MiB"}, 1);
    CHECK(guest->code("alloc a " + bytes(512 * kMiB)) == kSuccess);
    CHECK(guest->complaints().empty());
    CHECK(guest->code("alloc b " + bytes(512 * kMiB)) == kOutOfMemory);
    CHECK(guest->code("alloc c " + bytes(512 * kMiB)) == kOutOfMemory);
    CHECK(guest->code("alloc d " + bytes(64 * kMiB) + " managed") == kSuccess);
    CHECK(guest->code("thread alloc e " + bytes(512 * kMiB)) == kOutOfMemory);
    const Words said = guest->complaints();
    REQUIRE(said.size() == 1);
    CHECK(
        said[0] ==
        "cuslice: out of memory on GPU 0 (NVIDIA GeForce 940MX): cuMemAlloc_v2 tried to allocate 512.0 MiB; 812.0 MiB "
        "of the 1024.0 MiB limit are in use (contexts and modules 300.0 MiB, cuMemAlloc 512.0 MiB in 1 block), and "
        "60.0 MiB are kept for the driver (headroom). The limit is from CUSLICE_LIMIT. Free memory, or raise the "
        "limit");
    // The retry of a framework that has given its cache back fits; what ends the program is another request.
    CHECK(guest->code("free a") == kSuccess);
    CHECK(guest->code("alloc b " + bytes(512 * kMiB)) == kSuccess);
    CHECK(guest->code("alloc f " + bytes(200 * kMiB)) == kOutOfMemory);
    CHECK(guest->finish() == 0);
    const Words all = guest->complaints();
    REQUIRE(all.size() == 2);
    CHECK(all[1].find("cuMemAlloc_v2 tried to allocate 200.0 MiB") != std::string::npos);
    CHECK(all[1].find(". Before this, 2 refusals on this GPU were not logged") != std::string::npos);
}

TEST_CASE("a refusal names the limit, however much was asked for") {
    const Folder books;
    const std::string job = GENERATE("CUSLICE_JOB=", "CUSLICE_JOB=shared");
    auto guest = start("1xh200", books, {"CUSLICE_LIMIT=2GiB", job}, 1);
    CHECK(guest->code("alloc big " + std::to_string(1ull << 50)) == kOutOfMemory);
    REQUIRE(guest->complaints().size() == 1);
    CHECK(guest->complaints()[0].find("of the 2048.0 MiB limit are in use") != std::string::npos);
}

TEST_CASE("of many refusals few have a line, and the one that ended the program has") {
    const Folder books;
    auto guest = start("1xlaptop-2g", books, {"CUSLICE_LIMIT=1024MiB"}, 1);
    for (unsigned i = 0; i < 20; i++)
        CHECK(guest->code("alloc a " + bytes(kGiB + i)) == kOutOfMemory);
    CHECK(guest->complaints().size() < 10);
    CHECK(guest->code("alloc a " + bytes(1500 * kMiB)) == kOutOfMemory);
    CHECK(guest->finish() == 0);
    CHECK(guest->complaints().back().find("not logged; the last one before the program ended was cuMemAlloc_v2 of "
                                          "1500.0 MiB") != std::string::npos);
}

TEST_CASE("a program that probes for what fits gets one line and a count, and details at log = info") {
    const Folder books;
    const std::string level = GENERATE("CUSLICE_LOG=warn", "CUSLICE_LOG=info");
    auto guest = start("1xlaptop-2g", books, {"CUSLICE_LIMIT=1024MiB", level}, 1);
    const auto refusals = [&] {
        Words found;
        for (const std::string& line : guest->complaints())
            if (line.find("tried to allocate") != std::string::npos)
                found.push_back(line);
        return found;
    };
    // 300 MiB are the context's. 512 MiB fit, and 128 MiB beside them; nothing is freed meanwhile.
    for (const unsigned mib : {8192, 4096, 2048, 1024})
        CHECK(guest->code("alloc a " + bytes(mib * kMiB)) == kOutOfMemory);
    CHECK(guest->code("alloc a " + bytes(512 * kMiB)) == kSuccess);
    CHECK(guest->code("alloc b " + bytes(256 * kMiB)) == kOutOfMemory);
    CHECK(guest->code("alloc b " + bytes(128 * kMiB)) == kSuccess);
    CHECK(refusals().size() == (level == "CUSLICE_LOG=warn" ? 1 : 5));
    // Another function, a larger request, and a smaller one after a free.
    CHECK(guest->code("alloc c " + bytes(200 * kMiB) + " managed") == kOutOfMemory);
    CHECK(guest->code("alloc c " + bytes(9000 * kMiB)) == kOutOfMemory);
    CHECK(guest->code("free b") == kSuccess);
    CHECK(guest->code("alloc c " + bytes(700 * kMiB)) == kOutOfMemory);
    CHECK(guest->finish() == 0);
    const Words all = refusals();
    REQUIRE(all.size() == (level == "CUSLICE_LOG=warn" ? 4 : 8));
    CHECK((all[1].find(". Before this, 4 refusals on this GPU were not logged") != std::string::npos) ==
          (level == "CUSLICE_LOG=warn"));
    for (size_t i = 2; i < all.size(); i++)
        CHECK(all[i].find("not logged") == std::string::npos);
}

TEST_CASE("log = info introduces each GPU once, with where the limit came from") {
    const Folder books;
    auto guest =
        start("2xa100-40g", books, {"CUSLICE_LIMIT=1=1GiB", "CUSLICE_LOG=info", "CUDA_VISIBLE_DEVICES=1,0"}, 2);
    CHECK(guest->code("create again 0") == kSuccess);
    CHECK(guest->code("retain 1") == kSuccess);
    Words said = guest->complaints();
    REQUIRE(said.size() == 4);
    CHECK(said[0].rfind("cuslice: the driver is ", 0) == 0);
    CHECK(said[2].rfind("cuslice: JAX reads its variables ", 0) == 0);
    said.erase(said.begin() + 2);
    said.erase(said.begin());
    CHECK(said[0].rfind("cuslice: virtual 0 → physical 1, GPU-", 0) == 0);
    CHECK(said[0].find("limit 1024.0 MiB from CUSLICE_LIMIT") != std::string::npos);
    CHECK(said[1].rfind("cuslice: virtual 1 → physical 0, GPU-", 0) == 0);
    CHECK(said[1].find("no limit") != std::string::npos);
    for (const std::string& line : said)
        for (const char* part : {"NVIDIA A100-SXM4-40GB", "total ", "free ", ", 0000:", ":00.0"})
            CHECK(line.find(part) != std::string::npos);
}

TEST_CASE("log = info names the variables that JAX has read already, once, where nobody has set them") {
    const Folder books;
    const auto lines = [&](const Words& settings, unsigned gpus) {
        Words all{"CUSLICE_LOG=info"};
        all.insert(all.end(), settings.begin(), settings.end());
        auto guest = start("2xt4", books, all, gpus);
        Words found;
        for (const std::string& line : guest->complaints())
            if (line.find("XLA_") != std::string::npos)
                found.push_back(line);
        return found;
    };
    const auto line = [](const std::string& missed) {
        return "cuslice: JAX reads its variables before the first CUDA call. cuslice run sets " + missed +
               "; under LD_PRELOAD alone, set it in the environment if the program uses JAX";
    };
    CHECK(lines({"CUSLICE_LIMIT=4GiB"}, 2) == Words{line("XLA_PYTHON_CLIENT_MEM_FRACTION=0.9226")});
    const std::string file = books.write("settings/cuslice.toml", "[memory]\nallocator = \"growth\"\n");
    CHECK(lines({"CUSLICE_CONFIG=" + file}, 2) == Words{line("XLA_PYTHON_CLIENT_PREALLOCATE=false")});
    CHECK(lines({"CUSLICE_SPLIT=0=2"}, 3).size() == 1);
    CHECK(lines({}, 2).empty());
    CHECK(lines({"CUSLICE_ALLOCATOR=growth"}, 2).empty());
    for (const char* decided :
         {"CUSLICE_NO_FRAMEWORK_ENV=yes", "XLA_PYTHON_CLIENT_MEM_FRACTION=.9", "XLA_CLIENT_MEM_FRACTION=.9"})
        CHECK(lines({"CUSLICE_LIMIT=4GiB", decided}, 2).empty());
}

TEST_CASE("the launcher does the same") {
    const Folder books;
    const std::string launcher = std::string(CUSLICE_TEST_BUILD) + "/bin/cuslice";
    Words environment = plain({"CUSLICE_FAKE_DIR=" + books.path()});
    if (!kSanitizerRuntime.empty())
        environment.push_back("LD_PRELOAD=" + kSanitizerRuntime);
    Guest guest(
        {launcher, "run", "--fake", "1xlaptop-2g", "--limit", "1024MiB", "--", kGuests + "/guest_linked", "linked"},
        environment);
    retain_device(guest);
    CHECK(guest.number("total 0") == kGiB);
    CHECK(guest.code("fill " + bytes(64 * kMiB)) == kOutOfMemory);
    const Held held = books_of(books.path(), guest.pid());
    CHECK(held.known);
    CHECK(held.peak <= kGiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("at its end a process says how much of its limit it used at most, where that is wanted") {
    const auto said = [](const Words& settings, uint64_t taken) {
        const Folder books;
        auto guest = start("1xlaptop-2g", books, settings, 1);
        if (taken)
            REQUIRE(guest->code("alloc a " + bytes(taken)) == kSuccess);
        if (taken)
            REQUIRE(guest->code("freeall") == kSuccess);
        CHECK(guest->finish() == 0);
        Words lines;
        for (const std::string& line : guest->complaints())
            if (line.find("used at most") != std::string::npos)
                lines.push_back(line);
        return lines;
    };
    const std::string limit = "CUSLICE_LIMIT=1024MiB", summary = "CUSLICE_SUMMARY=yes";
    // A context of 300 MiB, and a fifth of it as headroom, which is what the figure may be too high by.
    const Words some = said({limit, summary}, 256 * kMiB);
    REQUIRE(some.size() == 1);
    CHECK(
        some[0] ==
        "cuslice: GPU 0 (NVIDIA GeForce 940MX): this process used at most 616.0 MiB of the 1024.0 MiB limit; at least "
        "408.0 MiB were never asked for; what held most: contexts and modules 300.0 MiB, cuMemAlloc 256.0 MiB in 1 "
        "block");
    CHECK(said({limit, "CUSLICE_LOG=info"}, 256 * kMiB) == some);
    const Words most = said({limit, summary}, 664 * kMiB);
    REQUIRE(most.size() == 1);
    CHECK(most[0].find("used at most 1024.0 MiB of the 1024.0 MiB limit") != std::string::npos);
    CHECK(most[0].ends_with("; what held most: cuMemAlloc 664.0 MiB in 1 block, contexts and modules 300.0 MiB"));
    CHECK(said({limit}, 256 * kMiB).empty());
    CHECK(said({summary}, 256 * kMiB).empty());
}

TEST_CASE("the summary says what held most while most was held, and how much was refused") {
    const auto said = [](const std::string& setting, const Words& commands) {
        const Folder books;
        auto guest = start("1xlaptop-2g", books, {"CUSLICE_LIMIT=1024MiB", "CUSLICE_SUMMARY=yes", setting}, 1);
        for (const std::string& command : commands)
            guest->code(command);
        CHECK(guest->finish() == 0);
        for (const std::string& line : guest->complaints())
            if (const size_t at = line.find("what held most: "); at != line.npos)
                return line.substr(at + 16);
        return std::string();
    };
    const std::string large = bytes(512 * kMiB), small = bytes(32 * kMiB), context = "contexts and modules 300.0 MiB";
    // The summary is of the moment when most was held: freed memory shows only if more was held then than at the end.
    CHECK(said("CUSLICE_LOG=warn", {"alloc a " + large}) == "cuMemAlloc 512.0 MiB in 1 block, " + context);
    CHECK(said("CUSLICE_LOG=warn", {"alloc a " + large, "free a", "alloc b " + small, "alloc c " + small}) ==
          "cuMemAlloc 512.0 MiB in 1 block, " + context);
    CHECK(said("CUSLICE_LOG=warn", {"alloc a " + small, "free a", "alloc b " + large, "alloc c " + small}) ==
          "cuMemAlloc 544.0 MiB in 2 blocks, " + context);
    CHECK(said("CUSLICE_LOG=warn", {"alloc a " + large, "alloc b " + large, "alloc b " + large, "freeall"}) ==
          "cuMemAlloc 512.0 MiB in 1 block, " + context + "; 2 requests were refused");
    CHECK(said("CUSLICE_LOG=warn", {"alloc a " + small, "alloc b " + bytes(2048 * kMiB)}) ==
          context + ", cuMemAlloc 32.0 MiB in 1 block; 1 request was refused");
    // With a cache, its segments.
    CHECK(said("CUSLICE_ALLOCATOR=growth", {"alloc a " + large, "freeall"}) ==
          "cuMemAlloc 512.0 MiB in 1 block, " + context);
}

}  // namespace
}  // namespace cuslice::tests
