// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/holdings.h"

#include <algorithm>

namespace cuslice::ledger {

namespace {

uint64_t read_given_back(const Holdings& holdings, const Figures& figures) {
    uint64_t back = 0, beyond = 0;
    for (unsigned i = 0; i < holdings.count; i++) {
        const Holdings::One& one = holdings.list[i];
        if (one.pid_namespace != figures.pid_namespace)
            continue;
        uint64_t figure = 0;
        const Figures::Answer answer = figures.read(figures.self, one.pid, &figure);
        if (answer == Figures::Answer::failed)
            return 0;
        if (answer == Figures::Answer::absent)
            continue;  // silence is not zero
        beyond += figure - std::min(figure, one.held + one.elsewhere);
        if (one.settled)
            back += one.held - std::min(one.held, figure);
    }
    return back - std::min(back, beyond);
}

}  // namespace

const Holdings::One* Holdings::find(int32_t pid, uint64_t pid_namespace) const {
    for (unsigned i = 0; i < count; i++)
        if (list[i].pid == pid && list[i].pid_namespace == pid_namespace)
            return &list[i];
    return nullptr;
}

// Twice: memory that one process gives back and another one has open goes from one figure to the other, perhaps between
// two readings.
uint64_t Holdings::given_back(const Figures& figures) const {
    const uint64_t first = read_given_back(*this, figures);
    return first ? std::min(first, read_given_back(*this, figures)) : 0;
}

}  // namespace cuslice::ledger
