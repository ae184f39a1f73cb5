// Steps that a test asks of a child with member() (place.h), and the child's answers, each one letter in a pipe.
#pragma once

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
};

// Several names for one letter: the step says which of them an assertion means.
struct Answer {
    static constexpr char done = 'y';
    static constexpr char joined = 'y';
    static constexpr char reserved = 'y';
    static constexpr char given_back = 'y';
    static constexpr char taken_back = 'y';
    static constexpr char closed = 'y';
    static constexpr char refused = 'n';
    static constexpr char nothing_to_take_back = 'n';
};

/// The answer to read_total and read_peak. At most 9 GiB fit a digit.
constexpr char gib(unsigned amount) { return static_cast<char>('0' + amount); }

}  // namespace cuslice::tests
