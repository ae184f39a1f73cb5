// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/timing.h"

namespace cuslice::bench {

enum class Bound { none, at_most, at_least };

// One line of the result: what was measured, and what was wanted of it.
struct Figure {
    std::string name;
    double value = 0;
    std::string unit;
    Bound bound = Bound::none;
    double target = 0;
    // Beside the value, where there are two sides: what each of them takes.
    std::optional<Comparison> sides;
};

// Writes the figure as one line of JSON to stdout, for scripts/bench_report.py.
void print(const Figure& figure);

// The usual figure: what ours takes more than the driver alone.
void print_extra(const std::string& name, const Comparison& sides, const std::string& unit, Bound bound, double target);

}  // namespace cuslice::bench
