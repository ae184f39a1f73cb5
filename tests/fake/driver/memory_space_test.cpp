// SPDX-License-Identifier: Apache-2.0
// Contents, page by page.

#include "fake/driver/memory_space.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

constexpr size_t size = 8 * kPageBytes;

unsigned char byte_at(MemorySpace& space, size_t offset) {
    unsigned char byte = 0xcc;
    space.read(space.base() + offset, &byte, 1);
    return byte;
}

}  // namespace

TEST_CASE("memory starts as zeros, and a uniform page keeps what is written into it") {
    MemorySpace space;
    REQUIRE(space.open(size, size));
    CHECK(byte_at(space, 12345) == 0);
    space.fill(space.base(), 0x44332211, 3 * kPageBytes);
    CHECK(byte_at(space, kPageBytes) == 0x11);
    CHECK(byte_at(space, kPageBytes + 3) == 0x44);
    const unsigned char mark = 0x99;
    space.write(space.base() + kPageBytes + 100, &mark, 1);
    CHECK(byte_at(space, kPageBytes + 100) == 0x99);
    CHECK(byte_at(space, kPageBytes + 101) == 0x22);
    CHECK(byte_at(space, 2 * kPageBytes - 1) == 0x44);
    CHECK(byte_at(space, 3 * kPageBytes) == 0);
    space.discard(space.base(), 3 * kPageBytes);
    CHECK(byte_at(space, kPageBytes + 100) == 0);
}

TEST_CASE("edges of a discarded range stay") {
    MemorySpace space;
    REQUIRE(space.open(size, size));
    std::vector<unsigned char> ones(4 * kPageBytes, 1);
    space.write(space.base(), ones.data(), ones.size());
    space.discard(space.base() + 100, 2 * kPageBytes);
    CHECK(byte_at(space, 100) == 1);
    CHECK(byte_at(space, kPageBytes) == 0);
    CHECK(byte_at(space, 2 * kPageBytes) == 1);
}

TEST_CASE("a pattern keeps its phase wherever it is copied") {
    MemorySpace space;
    REQUIRE(space.open(size, size));
    space.fill(space.base(), 0x04030201, 2 * kPageBytes);
    for (const size_t shift : {size_t{0}, size_t{1}, size_t{2}, size_t{3}}) {
        space.copy(space.base() + 4 * kPageBytes + shift, space, space.base(), kPageBytes + 5);
        for (size_t i = 0; i < kPageBytes + 5; i += 9973)
            CHECK(byte_at(space, 4 * kPageBytes + shift + i) == i % 4 + 1);
    }
}

TEST_CASE("shared memory is seen by both sides") {
    MemorySpace space;
    REQUIRE(space.open_shared(size, size));
    auto* host = reinterpret_cast<unsigned char*>(space.base());
    host[5 * kPageBytes + 7] = 42;
    CHECK(byte_at(space, 5 * kPageBytes + 7) == 42);
    space.fill(space.base(), 0x07070707, size);
    CHECK(host[size - 1] == 7);
    space.fill(space.base(), 0, size);
    CHECK(host[size - 1] == 0);
    host[3] = 9;
    MemorySpace other;
    REQUIRE(other.open(size, size));
    other.copy(other.base(), space, space.base(), 2 * kPageBytes);
    CHECK(byte_at(other, 3) == 9);
}

TEST_CASE("low memory lies where 32 bits reach") {
    MemorySpace space;
    REQUIRE(space.open_low());
    CHECK(space.base() + space.size() <= Address{1} << 32);
}

TEST_CASE("more addresses than there are give what there is") {
    MemorySpace space;
    REQUIRE(space.open(size, size_t{1} << 60));
    CHECK(space.size() >= size);
}

TEST_CASE("a space that another thread opens has nothing in it until it is open") {
    MemorySpace space;
    std::atomic<bool> looks{false};
    const unsigned char mark = 0x99;
    std::thread looker([&] {
        size_t seen = 0;
        while ((seen = space.size()) == 0 || !space.contains(space.base() + seen - 1))
            looks = true;
        space.write(space.base() + seen - 1, &mark, 1);
    });
    while (!looks)
        std::this_thread::yield();
    CHECK_FALSE(space.contains(0));
    REQUIRE(space.open(size, size));
    looker.join();
    CHECK(byte_at(space, space.size() - 1) == 0x99);
}
