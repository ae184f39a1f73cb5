#pragma once
#include <cstdint>

namespace cuslice {

// Why a reservation was refused, in bytes.
struct OverLimit {
    std::uint64_t requested = 0;
    std::uint64_t used = 0;
    std::uint64_t ceiling = 0;
    std::uint64_t others = 0;  // part of `used` that other processes hold, who share the limit
    bool no_place = false;     // the slice itself is refused: others who share the GPU have it (ledger/refusal.h)
};

}  // namespace cuslice
