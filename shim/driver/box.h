// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

namespace cuslice {

// Memory from an object's first byte to its last.
struct ByteRange {
    uint64_t address = 0;
    uint64_t bytes = 0;  // ~0: more than a number holds
};

// Rows in layers: `pitch` is bytes from a row to the next, `layer` rows from a layer to the next.
struct Box {
    uint64_t width = 0, rows = 1, layers = 1;  // width in bytes
    uint64_t pitch = 0, layer = 0;

    bool empty() const { return std::min({width, rows, layers}) == 0; }

    // Bytes before a row; false if that is more than a number holds.
    bool before(uint64_t row, uint64_t in_layer, uint64_t* bytes) const {
        uint64_t number = 0;
        return !__builtin_mul_overflow(in_layer, layer, &number) && !__builtin_add_overflow(number, row, &number) &&
               !__builtin_mul_overflow(number, pitch, bytes);
    }
};

// All from the first byte of the box to its last, and so also what a pitch leaves out in between.
inline ByteRange range_of(uint64_t address, const Box& box) {
    if (box.empty())
        return {address, 0};
    uint64_t bytes = 0;
    if (!box.before(box.rows - 1, box.layers - 1, &bytes) || __builtin_add_overflow(bytes, box.width, &bytes))
        bytes = ~0ull;
    return {address, bytes};
}

// The same of a box that begins at a place in what lies at `address`, where a pitch or a layer of 0 means that they
// touch each other.
inline ByteRange range_of(uint64_t address, uint64_t x, uint64_t y, uint64_t z, Box box) {
    if (box.empty())
        return {address, 0};
    uint64_t first = 0;
    if (!box.pitch)
        box.pitch = x + box.width;
    if (!box.layer)
        box.layer = y + box.rows;
    if (!box.before(y, z, &first) || __builtin_add_overflow(first, x, &first) ||
        __builtin_add_overflow(address, first, &first))
        return {address, ~0ull};
    return range_of(first, box);
}

// The range that a memset of rows fills. `width`: elements of `bytes` bytes in each row.
inline ByteRange range_of_rows(uint64_t address, uint64_t pitch, uint64_t width, uint64_t bytes, uint64_t rows) {
    Box box{0, rows, 1, pitch, 0};
    if (__builtin_mul_overflow(width, bytes, &box.width))
        box.width = ~0ull;
    return range_of(address, box);
}

}  // namespace cuslice
