// SPDX-License-Identifier: Apache-2.0
// The dynamic loader's cache, as ldconfig writes it, as it may be found torn, and as other systems write it.
#include "virtual_gpu/driver/loader_cache.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/virtual_gpu/driver/made_up_cache.h"

namespace cuslice {
namespace {

using Paths = std::vector<std::string>;

using tests::put;
using Row = tests::CacheRow;
constexpr std::int32_t kOurs = tests::kThisMachine, kOthers = tests::kOtherMachine, k32Bit = 0x0003;
const auto cache = tests::made_up_cache;

// The old table that some systems still have in front.
std::string with_old_table(const std::string& text, std::uint32_t count) {
    std::string out = "ld.so-1.7.0";
    out += '\0';
    put(out, count, 4);
    out.resize(16 + count * 12, 'x');
    out.resize((out.size() + 7) / 8 * 8, '\0');
    return out + text;
}

bool collect(const char* path, void* argument) {
    static_cast<Paths*>(argument)->push_back(path);
    return false;
}

Paths find(const std::string& text, const char* name = "libcuda.so.1") {
    const tests::Folder folder;
    Paths found;
    CHECK_FALSE(for_each_in_loader_cache(folder.write("cache", text).c_str(), name, collect, &found));
    return found;
}

const std::vector<Row> kRows{
    {kOurs, "libc.so.6", "/lib/libc.so.6"},     {k32Bit, "libcuda.so.1", "/lib32/libcuda.so.1"},
    {kOurs, "libcuda.so.1", "/a/libcuda.so.1"}, {kOthers, "libcuda.so.1", "/other/libcuda.so.1"},
    {kOurs, "libcuda.so.1", "/b/libcuda.so.1"}, {kOurs, "libcuda.so", "/c/libcuda.so"}};

TEST_CASE("the cache gives every path of this machine's kind, in its order") {
    CHECK(find(cache(kRows)) == Paths{"/a/libcuda.so.1", "/b/libcuda.so.1"});
    CHECK(find(cache(kRows), "libcuda.so") == Paths{"/c/libcuda.so"});
    CHECK(find(cache(kRows), "libcuda").empty());
    CHECK(find(cache({})).empty());
}

TEST_CASE("a visit that returns true is the last") {
    const tests::Folder folder;
    const std::string file = folder.write("cache", cache(kRows));
    int visits = 0;
    CHECK(for_each_in_loader_cache(
        file.c_str(), "libcuda.so.1", [](const char*, void* argument) { return ++*static_cast<int*>(argument) == 1; },
        &visits));
    CHECK(visits == 1);
}

TEST_CASE("an older table in front is skipped") {
    for (const std::uint32_t count : {0u, 1u, 2u, 3u, 100u})
        CHECK(find(with_old_table(cache(kRows), count)) == Paths{"/a/libcuda.so.1", "/b/libcuda.so.1"});
    CHECK(find(with_old_table("", 3)).empty());
    std::string unknown = with_old_table(cache(kRows), 3);
    unknown[10] = '1';  // ld.so-1.7.1, a version that there isn't
    CHECK(find(unknown).empty());
}

TEST_CASE("a missing, foreign or torn cache has no entries and does no harm") {
    Paths found;
    CHECK_FALSE(for_each_in_loader_cache("/nonexistent/ld.so.cache", "libcuda.so.1", collect, &found));
    CHECK(found.empty());
    CHECK(find("").empty());
    CHECK(find("not a cache at all, but long enough to have a header of forty-eight bytes").empty());
    CHECK(find(with_old_table("", 0xffffffff / 12)).empty());
    std::string text = cache(kRows);
    text[20] = text[21] = text[22] = text[23] = static_cast<char>(0xff);  // as many entries as can be counted
    CHECK(find(text).empty());
    // Cut off anywhere it gives a part of what was there, or nothing.
    const std::string whole = cache(kRows);
    for (std::size_t size = 0; size < whole.size(); ++size)
        for (const std::string& path : find(whole.substr(0, size)))
            CHECK((path == "/a/libcuda.so.1" || path == "/b/libcuda.so.1"));
}

TEST_CASE("whatever bytes there are, nothing outside the file is read", "[slow][fuzz]") {
    std::mt19937 random(3);
    for (int i = 0; i < 3000; ++i) {
        std::string text = random() % 2 ? cache(kRows) : with_old_table(cache(kRows), random() % 4);
        for (unsigned changes = 1 + random() % 8; changes; --changes)
            text[random() % text.size()] = static_cast<char>(random());
        if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
        find(text);
    }
}

}  // namespace
}  // namespace cuslice
