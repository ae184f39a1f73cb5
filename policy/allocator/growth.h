// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

namespace cuslice {

// How much memory to ask for next, in bytes.
//
// Like TensorFlow's allocator it starts with 2 MiB and doubles, so that small programs stay small. But what is doubled
// all the way holds up to twice of what is used; so from 8 MiB on a segment is no more than a sixth of what there is.
// That is still few driver calls: 45 of them to 16 GiB.
//
// A huge block has a segment to itself, of just its size. Its size may be another one in a program's next step, and
// segments don't join; but one that holds nothing else is idle once the block is freed, and can be exchanged for one
// that fits.
struct GrowthPolicy {
    static constexpr uint64_t kGranule = 2 << 20;  // drivers hand out memory in these
    static constexpr uint64_t kDoubleTo = 8 << 20;
    static constexpr uint64_t kShare = 6;
    static constexpr uint64_t kHuge = 64 << 20;
    // Bytes that may be exchanged, of the most that has been live: a program whose sizes never settle is not to pay for
    // it for ever.
    static constexpr uint64_t kExchanges = 5;

    // Bytes held beyond the most that has been live, in percent of it. The less it is, the more is exchanged: over 15
    // traces 23 saves a fifth of the driver calls.
    static constexpr uint64_t kSpare = 7;

    // Preallocated memory is cut anew where blocks of a size would leave more than one part in so many of it over; but
    // not for blocks of less than one part in so many.
    static constexpr uint64_t kStranded = 32, kSmallest = 256;

    // Least size of a segment for a request of `bytes`. Does not overflow: saturates.
    static constexpr uint64_t least(uint64_t bytes) {
        return bytes > ~0ull - kGranule ? bytes : (bytes + kGranule - 1) / kGranule * kGranule;
    }

    // The next segment: `held` bytes are in segments already, the last of which was of `last` bytes, and `room` more
    // are allowed. At least what the request needs, even if there is no room for it: the budget says so better. Others
    // of the request's size are likely to follow, and nothing is to be left over of the segment then.
    static constexpr uint64_t next(uint64_t request, uint64_t held, uint64_t last, uint64_t room) {
        const uint64_t most = std::max(kDoubleTo, held / kShare / kGranule * kGranule);
        const uint64_t wanted = std::clamp(2 * last, kGranule, most), whole = room / kGranule * kGranule;
        // The rest of the room would be a small segment, in which large blocks find no place.
        const bool last_one = whole / 2 < wanted;
        return std::max(least(request), last_one ? whole : of_whole_blocks(wanted, request));
    }

    // About as many bytes: a multiple of a request whose remainder would matter.
    static constexpr uint64_t of_whole_blocks(uint64_t bytes, uint64_t request) {
        return request < kGranule ? bytes : least((bytes + request / 2) / request * request);
    }

    static constexpr bool huge(uint64_t bytes) { return bytes >= kHuge; }
    // False if a huge segment is too good for a block: others could live for long in the rest of it.
    static constexpr bool suits(uint64_t segment, uint64_t bytes) { return segment <= bytes + bytes / 10 * 7; }

    // Most bytes to hold in segments if some of them are huge. `live`: the most that have been used at a time.
    static constexpr uint64_t enough(uint64_t live) { return live > ~0ull / 2 ? live : live + live / 100 * kSpare; }
    // As many of `wanted` bytes as keep what is held within `most`, but at least half of them and enough for the
    // request. 0 if even that is too much.
    static constexpr uint64_t within(uint64_t most, uint64_t held, uint64_t wanted, uint64_t request) {
        const uint64_t room = most > held ? (most - held) / kGranule * kGranule : 0;
        return room < fewest(wanted, request) ? 0 : std::min(wanted, room);
    }
    static constexpr uint64_t fewest(uint64_t wanted, uint64_t request) {
        return std::max(least(request), wanted / 2 / kGranule * kGranule);
    }

    // After the driver has refused `bytes`: a tenth less, but not less than the request needs. 0: it has been refused
    // that already.
    static constexpr uint64_t after_refusal(uint64_t bytes, uint64_t request) {
        const uint64_t need = least(request);
        return bytes <= need ? 0 : std::max(need, bytes / 10 * 9 / kGranule * kGranule);
    }
};

}  // namespace cuslice
