// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "config/settings.h"
#include "config/text.h"
#include "policy/budget/headroom.h"
#include "policy/budget/limit_error.h"
#include "policy/ledger/ledger.h"

namespace cuslice {

// Limits on a GPU of the jobs around a process's own, in bytes, the nearest first; kNoLimitBytes: nothing is known.
struct OuterLimits {
    uint64_t bytes[2] = {ledger::kNoLimitBytes, ledger::kNoLimitBytes};
};

// How much of a GPU a process may have, and what its allocator does with it, as the settings say. Sizes are in bytes.
struct Slice {
    bool limited = false;
    uint64_t limit = 0;         // of what nvidia-smi shows for the process
    bool plus_context = false;  // what the driver takes by itself comes on top of the limit
    bool own_headroom = false;  // false: derived from what the driver takes by itself
    bool takes_all = false;     // it is all that the GPU has, so that nothing is set aside
    uint64_t headroom = 0;
    FixedText<128> origin, group_origin, rule_origin;  // where the limits came from, for people
    uint64_t job_limit = ledger::kNoLimitBytes;        // `limit`, unless only a group has one
    OuterLimits outer_limits;
    uint64_t group_limit = ledger::kNoLimitBytes;
    bool in_group = false;                             // a group is named, whose limit may be another member's
    bool bound = false;                                // there is a limit, whatever the group has
    uint64_t rule_limit = ledger::kNoLimitBytes;       // of the slice that a rule of the system has processes share
    uint64_t ceiling_for_all = ledger::kNoLimitBytes;  // that the system's file sets for every user's programs
    AllocatorMode allocator = AllocatorMode::direct;
    FreeMode free = FreeMode::strict;
    uint64_t idle_release = 0;  // milliseconds; 0: never
    // The job's part of the GPU's time, in percent, and no more of all time than the cap. 0: time is not shared.
    struct Time {
        uint32_t weight = 0, cap = 0;
    } time;

    // Nothing limits the GPU, and all the same it is counted what is held of its `total` bytes.
    void count_all(uint64_t total, std::string_view why) {
        limited = bound = takes_all = true;
        limit = total;
        origin.assign(why);
    }

    // Bytes to keep free for what the driver takes unasked, beside `taken` bytes that it has taken so far. `lowered`:
    // the program wants less than the slice.
    uint64_t headroom_for(uint64_t taken, bool lowered = false) const {
        if (own_headroom)
            return headroom;
        const bool nothing = plus_context || (takes_all && !lowered);
        return nothing ? 0 : derived_headroom(taken);
    }

    // Where the limit came from, of so many bytes, that has refused something, for people. `whole`: the slice of the
    // whole GPU, which is this one where the GPU isn't split.
    std::string_view origin_of(LimitOf of, uint64_t bytes, const Slice& whole) const {
        if (of == LimitOf::rule)
            return whole.rule_origin.view();
        // Another member may have brought it.
        if (of == LimitOf::group)
            return bytes == whole.group_limit ? whole.group_origin.view() : "the group";
        return of == LimitOf::whole_gpu ? whole.origin.view() : origin.view();
    }

    // True if nothing but the group's limit holds, once it has one: until then `limit` is all that the GPU has.
    bool only_group() const { return limited && !bound; }

    // True if there is a limit that others can share, or may come to be one: a mode alone is none.
    bool can_be_shared() const {
        const bool own = job_limit != ledger::kNoLimitBytes || group_limit != ledger::kNoLimitBytes;
        return limited && (own || in_group);
    }
};

}  // namespace cuslice
