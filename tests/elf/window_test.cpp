// SPDX-License-Identifier: Apache-2.0
#include "elf/window.h"

#include <cstdint>
#include <random>
#include <string>

#include "tests/catch.h"
#include "tests/elf/made_up_file.h"

namespace cuslice::tests {
namespace {

std::string numbered(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<char>(i * 31 >> 3);
    return bytes;
}

std::string read(elf_window& window, uint64_t offset, size_t size) {
    std::string bytes(size, '?');
    bytes.resize(window.source.read(&window.source, offset, bytes.data(), size));
    return bytes;
}

}  // namespace

TEST_CASE("a window gives what its source has, wherever and however much is asked for") {
    std::mt19937 random(7);
    for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{30000}}) {
        const std::string whole = numbered(size);
        ByteSource source(whole);
        elf_window window;
        elf_open_window(&window, &source);
        for (int i = 0; i < 2000; ++i) {
            const size_t offset = random() % (size + 10), wanted = random() % (i % 10 ? 200 : 9000);
            CHECK(read(window, offset, wanted) == (offset < size ? whole.substr(offset, wanted) : ""));
        }
        CHECK(read(window, ELF_NOWHERE, 8).empty());
        CHECK(read(window, ELF_NOWHERE - 4, 8).empty());
    }
}

TEST_CASE("a source is asked once for what lies together, and its beginning stays") {
    ByteSource source(numbered(30000));
    elf_window window;
    elf_open_window(&window, &source);
    for (size_t at = 20000; at < 24000; at += 16) {
        read(window, at, 16);
        read(window, at % 4000, 16);
    }
    CHECK(source.reads() == 2);
}

TEST_CASE("a text is read up to its end, where it fits") {
    const std::string bytes = "first" + std::string(1, '\0') + std::string(300, 'x') + '\0' + "open";
    ByteSource source(bytes);
    char text[400];
    size_t length = 0;
    const auto reads = [&](uint64_t offset, size_t room) {
        return elf_read_text(&source, offset, text, room, &length);
    };
    CHECK(reads(0, sizeof text));
    CHECK(std::string(text, length) == "first");
    CHECK(reads(5, sizeof text));
    CHECK(length == 0);
    CHECK(reads(6, 301));
    CHECK(length == 300);
    CHECK_FALSE(reads(6, 300));
    CHECK_FALSE(reads(6, 0));
    CHECK_FALSE(reads(307, sizeof text));
    CHECK_FALSE(reads(bytes.size(), sizeof text));
    CHECK_FALSE(reads(ELF_NOWHERE, sizeof text));
}

}  // namespace cuslice::tests
