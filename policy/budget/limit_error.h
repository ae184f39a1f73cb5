// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

// Owner of the limit that refused a reservation.
enum class LimitOf : uint8_t {
    process,     // this process's own, on this GPU or this part of one
    job,         // that the job's processes share
    group,       // that the group's processes share
    rule,        // that processes share by a rule of the system
    whole_gpu,   // the physical GPU's, which its parts share
    other_part,  // that of another part of the same GPU, which is charged its share of what the driver takes
};

// Why a reservation was refused, in bytes.
struct LimitError {
    uint64_t requested = 0;
    uint64_t used = 0;
    uint64_t ceiling = 0;  // what could be granted: the limit less headroom
    uint64_t others = 0;   // part of `used` that other processes hold, who share the limit
    uint64_t limit = 0;    // 0: the caller's to fill in
    // Bytes kept for the driver then; 0: as much as is kept now. It depends on what the driver holds, and what that
    // has taken for the request may be given back before the refusal is told.
    uint64_t headroom = 0;
    LimitOf of = LimitOf::process;
    bool no_place = false;  // the slice itself is refused: others who share the GPU have it (ledger/refusal.h)
    int part = 0;           // LimitOf::other_part: which, by the program's ordinal
};

}  // namespace cuslice
