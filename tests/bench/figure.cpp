// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/figure.h"

#include <cstdio>

namespace cuslice::bench {

void print(const Figure& figure) {
    // The names are our own: nothing in them needs an escape.
    std::printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"", figure.name.c_str(), figure.value,
                figure.unit.c_str());
    if (figure.bound == Bound::none) {
        std::printf(", \"target\": null, \"bound\": null, \"met\": null");
    } else {
        const bool at_most = figure.bound == Bound::at_most;
        const bool met = at_most ? figure.value <= figure.target : figure.value >= figure.target;
        std::printf(", \"target\": %g, \"bound\": \"%s\", \"met\": %s", figure.target, at_most ? "at most" : "at least",
                    met ? "true" : "false");
    }
    if (figure.sides) {
        const Comparison& s = *figure.sides;
        std::printf(", \"raw\": %.4g, \"raw_p99\": %.4g, \"raw_max\": %.4g", s.raw, s.raw_p99, s.raw_max);
        std::printf(", \"cuslice\": %.4g, \"cuslice_p99\": %.4g, \"cuslice_max\": %.4g", s.ours, s.ours_p99,
                    s.ours_max);
    }
    std::puts("}");
    std::fflush(stdout);
}

void print_extra(const std::string& name, const Comparison& sides, const std::string& unit, Bound bound,
                 double target) {
    print({name, sides.extra, unit, bound, target, sides});
}

}  // namespace cuslice::bench
