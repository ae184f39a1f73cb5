// SPDX-License-Identifier: Apache-2.0
// Copies and fills blocks and what lies past them, in every way there is, and prints a line for each:
//
//   SYMBOL VARIANT exact inside empty past crossing freed untouched
//
// `exact`: all of the block. `inside`: the middle of it. `empty`: nothing, in a freed block. `past`: from the block's
// beginning to one unit past it. `crossing`: the same from its middle. `freed`: all of a freed block. Each is the
// CUresult, with a + behind it if that was done which it should, to the byte, and a - if not. `untouched` is yes or no:
// whether those that were refused have left the block and its neighbours as they were.
//
//   guest_bounds REQUESTED EXTENT    bytes of each block, and how many there are from one to the next
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "tests/preload/guest/bounds/cases.h"

namespace {

using namespace bounds;

constexpr unsigned kBlocks = 16;
size_t extent = 0;
CUdeviceptr middle = 0, gone = 0;
bool neighbours = false;  // before and after it

Bytes pattern(unsigned char first, size_t count) {
    Bytes bytes(count);
    for (size_t i = 0; i < count; i++)
        bytes[i] = static_cast<unsigned char>(first + i % 251);
    return bytes;
}
Bytes in_block, in_ends, in_neighbour;

Bytes look(CUdeviceptr at, size_t bytes) {
    Bytes there(bytes);
    BOUNDS_MUST(cuMemcpyDtoH_v2(there.data(), at, bytes));
    return there;
}

void prepare() {
    fill_ends(in_ends);
    BOUNDS_MUST(cuMemcpyHtoD_v2(middle, in_block.data(), extent));
    if (!neighbours)
        return;
    BOUNDS_MUST(cuMemcpyHtoD_v2(middle - extent, in_neighbour.data(), extent));
    BOUNDS_MUST(cuMemcpyHtoD_v2(middle + extent, in_neighbour.data(), extent));
}

bool around_untouched() {
    return !neighbours ||
           (look(middle - extent, extent) == in_neighbour && look(middle + extent, extent) == in_neighbour);
}

bool begins_with(const Bytes& bytes, const Bytes& expected, size_t from, size_t count) {
    return std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count),
                      expected.begin() + static_cast<ptrdiff_t>(from));
}

/// True if the case did exactly what it should, to `count` bytes from `offset` on.
bool done(const Case& tried, size_t offset, size_t count) {
    const Bytes block = look(middle, extent);
    Bytes expected = in_block;
    const auto at = expected.begin() + static_cast<ptrdiff_t>(offset);
    if (tried.does == Does::write)
        std::copy_n(in_ends.begin(), count, at);
    if (tried.does == Does::fill)
        std::fill_n(at, count, kFilled);
    if (block != expected || !around_untouched())
        return false;
    Bytes array(count);
    switch (tried.does) {
        case Does::read_to_host:
            return begins_with(ends.host, in_block, offset, count);
        case Does::read_to_device:
            return begins_with(look(ends.device, count), in_block, offset, count);
        case Does::read_to_array:
            BOUNDS_MUST(cuMemcpyAtoH_v2(array.data(), ends.array, 0, count));
            return begins_with(array, in_block, offset, count);
        default:
            return true;
    }
}

void print_done(const Case& tried, size_t offset, size_t count) {
    prepare();
    const CUresult result = tried.call(middle + offset, count);
    BOUNDS_MUST(cuCtxSynchronize());
    std::printf(" %d%c", result, done(tried, offset, count) ? '+' : '-');
}

void try_one(const Case& tried) {
    std::printf("%s %s", tried.symbol, tried.variant);
    print_done(tried, 0, extent);
    print_done(tried, extent / 2, extent / 4);
    prepare();
    std::printf(" %d", tried.call(gone, 0));
    std::printf(" %d", tried.call(middle, extent + tried.unit));
    std::printf(" %d", tried.call(middle + extent / 2, extent / 2 + tried.unit));
    std::printf(" %d", tried.call(gone, extent));
    BOUNDS_MUST(cuCtxSynchronize());
    std::printf(" %s\n", look(middle, extent) == in_block && around_untouched() ? "yes" : "no");
}

/// The block between two others, if there is one.
void choose(CUdeviceptr* blocks) {
    std::sort(blocks, blocks + kBlocks);
    middle = blocks[1];
    for (unsigned i = 1; i + 1 < kBlocks && !neighbours; i++) {
        if (blocks[i] - blocks[i - 1] != extent || blocks[i + 1] - blocks[i] != extent)
            continue;
        middle = blocks[i];
        neighbours = true;
    }
    for (unsigned i = 0; i < kBlocks && !gone; i++)
        if (blocks[i] > middle + extent || blocks[i] + extent < middle)
            gone = blocks[i];
}

}  // namespace

int main(int count, char** words) {
    if (count != 3)
        return 64;
    const size_t requested = std::strtoull(words[1], nullptr, 10);
    extent = std::strtoull(words[2], nullptr, 10);
    CUcontext context = nullptr;
    BOUNDS_MUST(cuInit(0));
    BOUNDS_MUST(cuDevicePrimaryCtxRetain(&context, 0));
    BOUNDS_MUST(cuCtxSetCurrent(context));
    make_ends(2 * extent);
    CUdeviceptr blocks[kBlocks];
    for (CUdeviceptr& block : blocks)
        BOUNDS_MUST(cuMemAlloc_v2(&block, requested));
    choose(blocks);
    BOUNDS_MUST(cuMemFree_v2(gone));
    in_block = pattern(1, extent);
    in_ends = pattern(2, 2 * extent);
    in_neighbour = pattern(3, extent);
    std::printf("neighbours %s\n", neighbours ? "yes" : "no");
    for (const Case& tried : cases())
        try_one(tried);

    // A forked child hears the driver's own answer.
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(cuMemcpyDtoH_v2(ends.host.data(), gone, extent));
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        return 4;
    std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
