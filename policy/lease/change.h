// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/lease/published.h"
#include "policy/lease/steps.h"

// A step of a file's value, made and published.
namespace cuslice::lease {

enum class Changed : uint8_t {
    yes,
    refused,  // by the step: nothing changed
    damaged,  // the file is no lease any more
    crowded,  // others replace the value all the time, or stand still while they make one
};

/// Publishes `next` in the place of the value that was `seen`, and shows each member its gate. `*again`: another
/// process was quicker.
Changed publish(File& file, const State& next, uint64_t seen, uint64_t self, Surroundings& surroundings, bool* again);

/// Makes a step of the current value, which is read into `state`, and makes it again where another process was
/// quicker. `self`: this process's presence. `step()` changes `state`; false: it is not to be changed.
template <typename Step>
Changed change(File& file, State& state, uint64_t self, Surroundings& surroundings, Step step) {
    constexpr unsigned kTries = 1000;
    for (unsigned i = 0; i < kTries; i++) {
        uint64_t seen = 0;
        if (!read_current(file, &state, &seen) || !is_whole(state))
            return Changed::damaged;
        if (!step())
            return Changed::refused;
        bool again = false;
        const Changed changed = publish(file, state, seen, self, surroundings, &again);
        if (!again)
            return changed;
    }
    return Changed::crowded;
}

}  // namespace cuslice::lease
