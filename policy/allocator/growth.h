#pragma once
#include <algorithm>
#include <cstdint>

namespace cuslice {

// How much memory to ask for next, in bytes.
//
// Like TensorFlow's allocator it starts with 2 MiB and doubles, so that small programs stay small. But what is doubled
// all the way holds up to twice of what is used; so from 8 MiB on a segment is no more than a sixth of what there is.
// That is still few driver calls: 45 of them to 16 GiB.
struct Growth {
    static constexpr std::uint64_t kGranule = 2 << 20;  // drivers hand out memory in these
    static constexpr std::uint64_t kDoubleTo = 8 << 20;
    static constexpr std::uint64_t kShare = 6;

    // What a segment for a request of `bytes` must have at least. Does not overflow: saturates.
    static constexpr std::uint64_t least(std::uint64_t bytes) {
        return bytes > ~0ull - kGranule ? bytes : (bytes + kGranule - 1) / kGranule * kGranule;
    }

    // The next segment: `held` bytes are in segments already, the last of which was of `last` bytes, and `room` more
    // are allowed. At least what the request needs, even if there is no room for it: the budget says so better.
    static constexpr std::uint64_t next(std::uint64_t request, std::uint64_t held, std::uint64_t last,
                                        std::uint64_t room) {
        const std::uint64_t most = std::max(kDoubleTo, held / kShare / kGranule * kGranule);
        const std::uint64_t wanted = std::clamp(2 * last, kGranule, most), whole = room / kGranule * kGranule;
        // The rest of the room would be a small segment, in which large blocks find no place.
        const bool last_one = whole / 2 < wanted;
        return std::max(least(request), last_one ? whole : wanted);
    }

    // After the driver has refused `bytes`: a tenth less, but not less than the request needs. 0: it has been refused
    // that already.
    static constexpr std::uint64_t after_refusal(std::uint64_t bytes, std::uint64_t request) {
        const std::uint64_t need = least(request);
        return bytes <= need ? 0 : std::max(need, bytes / 10 * 9 / kGranule * kGranule);
    }
};

}  // namespace cuslice
