// SPDX-License-Identifier: Apache-2.0
// Copies and memsets past a block's end: where blocks lie beside each other in one allocation of the driver's, they are
// refused as the driver refuses those past an allocation's end, by every function that takes an address.
#include <map>

#include "tests/preload/lookups.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

struct Size {
    uint64_t requested, extent;
};

/// Runs guest/bounds and returns its rows by "SYMBOL VARIANT"; "neighbours" and "child" are rows of one word.
std::map<std::string, std::string> tried(Size size, const Words& environment) {
    const Outcome outcome = run({kGuests + "/guest_bounds", bytes(size.requested), bytes(size.extent)}, environment);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    std::map<std::string, std::string> rows;
    for (const std::string& line : split_lines(outcome.out)) {
        const Words words = split_words(line);
        const size_t name = words.size() > 2 ? words[0].size() + words[1].size() + 1 : words[0].size();
        rows[line.substr(0, name)] = line.substr(name + 1);
    }
    return rows;
}

std::map<std::string, std::string> under_cuslice(Size size, const Words& settings) {
    const Folder books;
    return tried(size, sliced("1xt4", books.path(), settings));
}

const std::string kRight = "0+ 0+ 0 1 1 1 yes", kNotInTheFake = "801- 801- 801 801 801 801 yes",
                  kCheckedBefore = "801- 801- 801 1 1 1 yes";

void check_rows(const std::map<std::string, std::string>& rows, const std::map<std::string, std::string>& drivers) {
    CHECK(rows.size() == drivers.size());
    for (const auto& [name, drivers_row] : drivers) {
        CAPTURE(name);
        if (name == "neighbours")
            continue;
        // If the fake driver lacks a function, cuslice still refuses bad ranges, as the driver would if it had the
        // function.
        CHECK(rows.at(name) == (drivers_row == kNotInTheFake ? kCheckedBefore : drivers_row));
    }
}

// A small block in a span, one above 64 KiB, and one over several times 2 MiB.
constexpr Size kSizes[] = {{1024, 1024}, {100 << 10, 100 << 10}, {5 << 19, 5 << 19}};

}  // namespace

TEST_CASE("the driver's own memory: every copy and memset stays within its allocation") {
    const Folder books;
    const auto rows = tried(kSizes[0], raw("1xt4", books.path()));
    std::set<std::string> symbols;
    unsigned working = 0;
    for (const auto& [name, row] : rows) {
        if (name == "neighbours" || name == "child")
            continue;
        CAPTURE(name);
        CHECK((row == kRight || row == kNotInTheFake));
        working += row == kRight;
        symbols.insert(split_words(name).at(0));
    }
    CHECK(working > 90);
    CHECK(symbols == checked_symbols());
}

TEST_CASE("cached memory: every copy and memset stays within its block, and answers as the driver does", "[slow]") {
    const std::string allocator = GENERATE("growth", "prealloc"), free = GENERATE("strict", "deferred");
    const unsigned which = GENERATE(0u, 1u, 2u);
    if (which == 2 && (allocator == "prealloc" || free == "deferred"))
        return;  // it takes its time, and is no different
    if (which != 0 && kSanitizer == "thread")
        return;  // one thread, whatever the size, and a minute each
    const Size size = kSizes[which];
    CAPTURE(allocator, free, size.extent);
    const Folder books;
    const auto rows =
        under_cuslice(size, {"CUSLICE_LIMIT=2GiB", "CUSLICE_ALLOCATOR=" + allocator, "CUSLICE_FREE=" + free});
    CHECK(rows.at("neighbours") == "yes");
    check_rows(rows, tried(size, raw("1xt4", books.path())));
}

TEST_CASE("what a block's size was rounded up by hits nobody, and is not refused") {
    const Size size = GENERATE(Size{1000, 1024}, Size{4097, 5120}, Size{102000, 102400});
    CAPTURE(size.requested);
    const auto rows = under_cuslice(size, {"CUSLICE_ALLOCATOR=growth"});
    CHECK(rows.at("neighbours") == "yes");
    for (const auto& [name, row] : rows) {
        CAPTURE(name);
        if (name != "neighbours" && name != "child")
            CHECK((row == kRight || row == kCheckedBefore));
    }
}

TEST_CASE("where nothing is cached the driver alone answers") {
    const std::string setting =
        GENERATE("CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=direct", "CUSLICE_ALLOCATOR=0=direct,1=growth");
    CAPTURE(setting);
    const Folder books;
    const Words settings{setting};
    const auto rows = tried(kSizes[0], sliced("2xt4", books.path(), settings));
    auto drivers = tried(kSizes[0], raw("2xt4", books.path()));
    for (auto& [name, row] : drivers) {
        CAPTURE(name);
        // One GPU that caches is enough for all to be looked at; what is not a cache's is the driver's all the same.
        if (name != "neighbours")
            CHECK(rows.at(name) == row);
    }
}

}  // namespace cuslice::tests
