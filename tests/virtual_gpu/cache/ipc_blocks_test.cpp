// SPDX-License-Identifier: Apache-2.0
// Handles of blocks that begin somewhere in a segment.
#include "virtual_gpu/cache/ipc_blocks.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"

using namespace cuslice;

namespace {

CUipcMemHandle of_segment(char number) {
    CUipcMemHandle handle;
    std::memset(&handle, number, sizeof handle);
    return handle;
}

bool same(const CUipcMemHandle& one, const CUipcMemHandle& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

}  // namespace

TEST_CASE("a block's handle leads to its segment's, and says where in it the block lies") {
    IpcBlocks blocks;
    CUipcMemHandle one = of_segment(1), other = of_segment(1), apart = of_segment(2);
    REQUIRE(blocks.give(&one, 512, 1000));
    REQUIRE(blocks.give(&other, 4096, 77));
    REQUIRE(blocks.give(&apart, 1 << 20, 8));
    CHECK_FALSE(same(one, of_segment(1)));
    CHECK_FALSE(same(one, other));
    const IpcBlocks::Given first = IpcBlocks::read(one), second = IpcBlocks::read(other),
                           third = IpcBlocks::read(apart);
    CHECK(first.ours);
    CHECK(first.readable);
    CHECK(same(first.handle, of_segment(1)));
    CHECK(first.offset == 512);
    CHECK(first.bytes == 1000);
    CHECK(same(second.handle, of_segment(1)));
    CHECK(second.offset == 4096);
    CHECK(same(third.handle, of_segment(2)));
    CHECK(third.bytes == 8);
    blocks.forget();
}

TEST_CASE("the driver's own handle is handed on as it is, and one whose process has ended is not readable") {
    const IpcBlocks::Given own = IpcBlocks::read(of_segment(3));
    CHECK_FALSE(own.ours);
    CHECK(same(own.handle, of_segment(3)));
    IpcBlocks blocks;
    CUipcMemHandle handle = of_segment(4);
    REQUIRE(blocks.give(&handle, 512, 1000));
    blocks.forget();
    errno = 0;
    const IpcBlocks::Given gone = IpcBlocks::read(handle);
    CHECK(gone.ours);
    CHECK_FALSE(gone.readable);
    CHECK(errno == 0);
}

TEST_CASE("handles of more segments than a file has places for lead each to its own") {
    IpcBlocks blocks;
    std::vector<CUipcMemHandle> given;
    for (uint32_t i = 0; i < 1500; i++) {
        CUipcMemHandle handle = of_segment(5);
        std::memcpy(&handle, &i, sizeof i);
        REQUIRE(blocks.give(&handle, i, i));
        given.push_back(handle);
    }
    for (uint32_t i = 0; i < given.size(); i++) {
        const IpcBlocks::Given read = IpcBlocks::read(given[i]);
        uint32_t number = 0;
        std::memcpy(&number, &read.handle, sizeof number);
        REQUIRE(read.readable);
        REQUIRE(number == i);
        REQUIRE(read.offset == i);
    }
    blocks.forget();
}

TEST_CASE("without memory no handle is given, and the driver's stays as it was") {
    IpcBlocks blocks;
    CUipcMemHandle handle = of_segment(6);
    {
        const tests::NoMemory none;
        CHECK_FALSE(blocks.give(&handle, 512, 1000));
    }
    CHECK(same(handle, of_segment(6)));
    CHECK(blocks.give(&handle, 512, 1000));
    CHECK(IpcBlocks::read(handle).readable);
    blocks.forget();
}

TEST_CASE("an opened block is known until it is closed as often, and what the driver opened is given back to it") {
    IpcBlocks blocks;
    CHECK(blocks.bytes_at(0x5200) == 0);
    CHECK(blocks.closed(0x5200) == 0x5200);  // none of ours
    REQUIRE(blocks.opened(0x5200, 0x200, 1000));
    REQUIRE(blocks.opened(0x5200, 0x200, 1000));
    REQUIRE(blocks.opened(0x9400, 0x400, 7));
    CHECK(blocks.bytes_at(0x5200) == 1000);
    CHECK(blocks.bytes_at(0x5000) == 0);
    CHECK(blocks.closed(0x5200) == 0x5000);
    CHECK(blocks.bytes_at(0x5200) == 1000);
    CHECK(blocks.closed(0x5200) == 0x5000);
    CHECK(blocks.bytes_at(0x5200) == 0);
    CHECK(blocks.bytes_at(0x9400) == 7);
    CHECK(blocks.closed(0x9400) == 0x9000);
}

TEST_CASE("a block that there is no memory to note is not opened") {
    IpcBlocks blocks;
    {
        const tests::NoMemory none;
        CHECK_FALSE(blocks.opened(0x5200, 0x200, 1000));
    }
    CHECK(blocks.bytes_at(0x5200) == 0);
    CHECK(blocks.closed(0x5200) == 0x5200);
}
