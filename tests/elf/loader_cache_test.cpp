// SPDX-License-Identifier: Apache-2.0
// The dynamic loader's cache, as ldconfig writes it, as it may be found torn, and as other systems write it.
#include "elf/loader_cache.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/elf/at_the_edge.h"
#include "tests/elf/made_up_cache.h"

namespace cuslice::tests {
namespace {

using Paths = std::vector<std::string>;

constexpr int32_t kOurs = kThisMachine, kOthers = kOtherMachine, k32Bit = 0x0003;
constexpr size_t kCountAt = 20, kEntriesAt = 48, kEntrySize = 24, kKeyAt = 4, kValueAt = 8;

const std::vector<CacheRow> kRows{
    {kOurs, "libc.so.6", "/lib/libc.so.6"},     {k32Bit, "libcuda.so.1", "/lib32/libcuda.so.1"},
    {kOurs, "libcuda.so.1", "/a/libcuda.so.1"}, {kOthers, "libcuda.so.1", "/other/libcuda.so.1"},
    {kOurs, "libcuda.so.1", "/b/libcuda.so.1"}, {kOurs, "libcuda.so", "/c/libcuda.so"}};

// The old table that some systems still have in front.
std::string with_old_table(const std::string& text, uint32_t count) {
    std::string out = "ld.so-1.7.0";
    out += '\0';
    put(out, count, 4);
    out.resize(16 + count * 12, 'x');
    out.resize((out.size() + 7) / 8 * 8, '\0');
    return out + text;
}

// The same with other 32 bits at this place.
std::string with_word(std::string text, size_t at, uint32_t word) {
    std::string bytes;
    put(bytes, word, 4);
    return text.replace(at, 4, bytes);
}

Paths find(const std::string& text, const char* name = "libcuda.so.1") {
    const AtTheEdge bytes(text);
    const elf_cache cache = elf_open_cache(bytes.begin(), bytes.size());
    Paths found;
    size_t place = 0;
    while (const char* const path = elf_next_in_cache(&cache, name, &place))
        found.emplace_back(path);
    return found;
}

}  // namespace

TEST_CASE("the cache gives every path of this machine's kind, in its order") {
    CHECK(find(made_up_cache(kRows)) == Paths{"/a/libcuda.so.1", "/b/libcuda.so.1"});
    CHECK(find(made_up_cache(kRows), "libcuda.so") == Paths{"/c/libcuda.so"});
    CHECK(find(made_up_cache(kRows), "libcuda").empty());
    CHECK(find(made_up_cache(kRows), "").empty());
    CHECK(find(made_up_cache({})).empty());
}

TEST_CASE("an older table in front is skipped") {
    for (const uint32_t count : {0u, 1u, 2u, 3u, 100u})
        CHECK(find(with_old_table(made_up_cache(kRows), count)) == Paths{"/a/libcuda.so.1", "/b/libcuda.so.1"});
    CHECK(find(with_old_table("", 3)).empty());
    std::string unknown = with_old_table(made_up_cache(kRows), 3);
    unknown[10] = '1';  // ld.so-1.7.1, a version that there isn't
    CHECK(find(unknown).empty());
}

TEST_CASE("a foreign cache has no entries, and neither has one with more of them than it has room for") {
    CHECK(elf_open_cache(nullptr, 0).count == 0);
    CHECK(find("").empty());
    CHECK(find("not a cache at all, but long enough to have a header of forty-eight bytes").empty());
    CHECK(find(with_word(with_old_table("", 1), 12, 0xffffffff)).empty());
    const std::string text = made_up_cache({{kOurs, "libcuda.so.1", "/a/libcuda.so.1"}});
    const uint32_t room = static_cast<uint32_t>((text.size() - kEntriesAt) / kEntrySize);
    CHECK(find(with_word(text, kCountAt, room)).size() == 1);
    for (const uint32_t count : {room + 1, 0x7fffffffu, 0xffffffffu})
        CHECK(find(with_word(text, kCountAt, count)).empty());
}

TEST_CASE("a text that does not end in the cache is none, as a name and as a path") {
    const std::string whole = made_up_cache({{kOurs, "libcuda.so.1", "/a/libcuda.so.1"}});
    CHECK(find(whole) == Paths{"/a/libcuda.so.1"});
    CHECK(find(whole.substr(0, whole.size() - 1)).empty());
    const auto end = static_cast<uint32_t>(whole.size());
    for (const uint32_t at : {end, end + 1, 0x80000000u, 0xffffffffu}) {
        CHECK(find(with_word(whole, kEntriesAt + kKeyAt, at)).empty());
        CHECK(find(with_word(whole, kEntriesAt + kValueAt, at)).empty());
    }
    CHECK(find(with_word(whole, kEntriesAt + kValueAt, end - 1)) == Paths{""});
}

TEST_CASE("cut off anywhere, it gives a part of what was there, or nothing") {
    const std::string whole = made_up_cache(kRows);
    for (size_t size = 0; size < whole.size(); ++size)
        for (const std::string& path : find(whole.substr(0, size)))
            CHECK((path == "/a/libcuda.so.1" || path == "/b/libcuda.so.1"));
}

TEST_CASE("whatever bytes there are, nothing outside the cache is read", "[slow][fuzz]") {
    std::mt19937 random(3);
    for (int i = 0; i < 3000; ++i) {
        std::string text = random() % 2 ? made_up_cache(kRows) : with_old_table(made_up_cache(kRows), random() % 4);
        for (unsigned changes = 1 + random() % 8; changes; --changes)
            text[random() % text.size()] = static_cast<char>(random());
        if (random() % 4 == 0)
            text.resize(random() % (text.size() + 1));
        find(text);
    }
}

}  // namespace cuslice::tests
