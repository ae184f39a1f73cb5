// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/change.h"

#include "policy/lease/gate.h"

namespace cuslice::lease {

namespace {

void show_gates(File& file, const State& state, Surroundings& surroundings) {
    for (uint32_t i = 0; i < kMembers; i++)
        if (show_gate(file.gates[i], state.members[i].gate))
            surroundings.wake(file.gates[i]);
}

}  // namespace

Changed publish(File& file, const State& next, uint64_t seen, uint64_t self, Surroundings& surroundings, bool* again) {
    if (!is_current(file, seen, next)) {
        const Replaced replaced = replace_current(file, next, seen, self, surroundings);
        *again = replaced == Replaced::no;
        if (replaced == Replaced::no_buffer)
            return Changed::crowded;
    }
    if (!*again)
        show_gates(file, next, surroundings);
    return Changed::yes;
}

}  // namespace cuslice::lease
