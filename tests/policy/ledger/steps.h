// SPDX-License-Identifier: Apache-2.0
// Steps that a test asks of a child (place.h), and the child's answers, each one letter in a pipe. Steps that only one
// file's children know are named there.
#pragma once

#include <cstdint>

namespace cuslice::tests {

struct Step {
    static constexpr char join = 'j';
    static constexpr char reserve_5_gib = 'r';
    static constexpr char reserve_1_gib = 's';
    static constexpr char give_back_5_gib = 'g';
    static constexpr char take_back_dead = 'd';
    static constexpr char read_total = 't';
    static constexpr char read_peak = 'p';
    static constexpr char close_descriptors = 'c';
    static constexpr char leave_child_behind = 'f';
    static constexpr char become_other_user = 'u';
    static constexpr char keep_locked = 'k';
    static constexpr char read_available = 'l';
};

// Several names for one letter: the step says which of them an assertion means.
struct Answer {
    static constexpr char done = 'y';
    static constexpr char joined = 'y';
    static constexpr char reserved = 'y';
    static constexpr char given_back = 'y';
    static constexpr char taken_back = 'y';
    static constexpr char closed = 'y';
    static constexpr char locked = 'y';
    static constexpr char refused = 'n';
    static constexpr char nothing_to_take_back = 'n';
    static constexpr char not_locked = 'n';
    static constexpr char unavailable = 'u';
    static constexpr char not_opened = 'x';
    static constexpr char unknown = '?';
    static constexpr char none = '!';
};

/// A number as one character, from '0' on: above 9 it is what comes behind the digits.
constexpr char digit(uint64_t number) { return static_cast<char>('0' + number); }

/// The answer to read_total, read_peak and read_available.
constexpr char gib(uint64_t amount) { return digit(amount); }

}  // namespace cuslice::tests
