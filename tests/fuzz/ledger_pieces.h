// SPDX-License-Identifier: Apache-2.0
// Pieces of an input, for a ledger's file: {offset, 3 bytes; length; bytes}, as often as there are some.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "policy/ledger/layout.h"

namespace cuslice {

/// The place in the file that an offset of 24 bits stands for. The lower half of them lies anywhere, where hardly any
/// hits what a reader looks at; the upper half in the header and in what comes first of everything else.
inline size_t place_of(uint32_t offset) {
    using ledger::File;
    constexpr struct {
        size_t begin, size;
    } kFirst[] = {{0, sizeof(ledger::Header)},
                  {offsetof(File, accounts), sizeof(ledger::Account)},
                  {offsetof(File, tickets), sizeof(ledger::Ticket)},
                  {offsetof(File, members), sizeof(ledger::Member)},
                  {offsetof(File, stripes), ledger::kStripes * sizeof(ledger::Stripe)}};
    if (offset < 1 << 23)
        return offset % sizeof(File);
    const auto& first = kFirst[(offset >> 16) % std::size(kFirst)];
    return first.begin + (offset & 0xffff) % first.size;
}

/// Calls put(place, bytes, length) for each piece, which lies within the file.
template <typename Put>
void each_piece(const uint8_t* data, size_t size, const Put& put) {
    while (size > 4) {
        const size_t place = place_of(data[0] | data[1] << 8 | data[2] << 16);
        const size_t length = std::min({size_t{data[3]}, size - 4, sizeof(ledger::File) - place});
        put(place, data + 4, length);
        data += 4 + length;
        size -= 4 + length;
    }
}

}  // namespace cuslice
