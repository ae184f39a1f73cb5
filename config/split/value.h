// SPDX-License-Identifier: Apache-2.0
// The value of `split`: its grammar, and what is known of it without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/config_error.h"
#include "config/text.h"

namespace cuslice {

/// Virtual GPUs of a process.
inline constexpr size_t kMaxParts = 64;
inline constexpr uint64_t kMinPart = 64ull << 20;  // bytes

/// A part without a place in the order, which comes after all that have one.
inline constexpr unsigned kNoPlace = ~0u;

/// A part without a number of its own, whose identity is made of where it stands among those that are written.
inline constexpr unsigned kNoNumber = ~0u;

/// A stream priority is from -32 to 32 as far as is known without a GPU. NVIDIA's have 0 down to -1, -2 or -5, and say
/// which (cuCtxGetStreamPriorityRange).
inline constexpr unsigned kFarthestPriority = 32;

/// One size as it is written.
struct WrittenPart {
    /// 0 for the rest, until its GPU is known.
    uint64_t bytes = 0;
    unsigned place = kNoPlace;
    unsigned number = kNoNumber;
    bool rest = false;
    /// Priority of the part's streams, as CUDA has it: lower is more urgent. None: the driver's default.
    std::optional<int> priority;
};

/// A value of `split`, taken apart.
struct WrittenSplit {
    /// How many equal partitions; 0 if there are sizes.
    unsigned equal = 0;
    WrittenPart parts[kMaxParts];
    size_t count = 0;
    /// The sizes are the program's, and the context comes on top.
    bool plus_context = false;

    bool has_places() const { return count != 0 && parts[0].place != kNoPlace; }
    bool has_rest() const {
        for (size_t i = 0; i < count; ++i)
            if (parts[i].rest)
                return true;
        return false;
    }
};

/// Reads a value of `split`: a number of equal partitions (4; 1 leaves the GPU whole), or sizes with a plus between
/// them, one of which may be the rest (1GiB+2GiB, 1GiB+rest). All sizes, or none, may have the number of which their
/// identity is made behind them (1GiB#2+2GiB#5), each another; then all, or none, a place in the order of all the
/// program's GPUs (1GiB@1+2GiB@0, 1GiB#2@1+2GiB#5@0), and any of them a stream priority behind that (1GiB@1:-1+2GiB@0,
/// or 1GiB:-1+2GiB). "+context" after the last one (plus_context.h) holds for all. Pure.
bool read_split(std::string_view text, WrittenSplit& written, Reason& why);

/// The same where only the number of equal partitions is wanted: 0 if there are sizes. Pure.
bool parse_split(std::string_view text, uint64_t& equal, Reason& why);

}  // namespace cuslice
