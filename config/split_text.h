// A value of `split`, read: what is known of it without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/split.h"
#include "config/text.h"

namespace cuslice {

/// A part without a place in the order, which comes after all that have one.
inline constexpr unsigned kNoPlace = ~0u;

/// One size as it is written.
struct WrittenPart {
    /// Of the rest: 0, until its GPU is known.
    std::uint64_t bytes = 0;
    unsigned place = kNoPlace;
    bool rest = false;
};

/// A value of `split`, taken apart.
struct WrittenSplit {
    /// How many equal parts; 0 if there are sizes.
    unsigned equal = 0;
    WrittenPart parts[VirtualParts::kMost];
    std::size_t count = 0;

    bool has_places() const { return count != 0 && parts[0].place != kNoPlace; }
    bool has_rest() const {
        for (std::size_t i = 0; i < count; ++i)
            if (parts[i].rest) return true;
        return false;
    }
};

/// What parse_split checks. Pure.
bool read_split(std::string_view text, WrittenSplit& written, Reason& why);

}  // namespace cuslice
