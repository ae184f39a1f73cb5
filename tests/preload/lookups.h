// SPDX-License-Identifier: Apache-2.0
// Look-ups as programs make them, and what a driver answers, with and without cuslice before it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/preload/guest.h"

namespace cuslice::tests {

struct LookUp {
    std::string name;  // "(empty)" for the empty one
    int version = 0;
    unsigned long flags = 0;
    std::string text() const { return name + " " + std::to_string(version) + " " + std::to_string(flags); }
};

/// A pointer as dladdr has it, or "null", "untouched" in `file`.
struct Place {
    std::string file, offset, symbol;
    bool operator==(const Place&) const = default;
};

struct Answer {
    int v1 = -1;
    Place v1_pointer;
    int v2 = -1, status = -1;
    Place v2_pointer;
    std::string more;
};

/// Every (name, version) of the toolkit's cudaTypedefs.h, with each of the flags 0, 1 and 2.
std::vector<LookUp> of_typedefs();
/// Look-ups that a runtime makes when it starts: data/cudart13-lookups.txt.
std::vector<LookUp> of_runtime();

/// Symbols before which a hook stands, from the one list of functions, and those whose arguments are looked at where
/// memory is cached, or that wait for their job's turn where time is shared.
std::set<std::string> hooked_symbols();
std::set<std::string> checked_symbols();
std::set<std::string> gated_symbols();

/// The answers of a child process with this environment, one for each look-up. Fails the test if there are not as many.
std::vector<Answer> ask(const std::vector<LookUp>& look_ups, const Words& environment, bool after_init = false,
                        std::string* err = nullptr);

}  // namespace cuslice::tests
