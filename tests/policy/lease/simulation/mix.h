// SPDX-License-Identifier: Apache-2.0
// Several programs on the same GPUs for some minutes of simulated time, and who had how much of them.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/policy/lease/simulation/workload.h"

namespace cuslice::tests {

/// The way in which it is decided whose work a GPU does.
enum class Sharing : uint8_t {
    lease,
    driver,        // equal time slices, and no share
    token_bucket,  // launches bought with time that each program is given, as in other programs that share
};

struct Participant {
    uint32_t weight = lease::kWhole;
    Demand demand;
    uint32_t gpus = 1;  // bits
    uint32_t cap = lease::kWhole;
};

struct Mix {
    std::vector<Participant> participants;
    Sharing sharing = Sharing::lease;
    unsigned gpus = 1;
    double quantum = 50, depth = 2, depth_error = 0.3;  // milliseconds; a part
    double gap = 0.1;  // milliseconds from one program's work to the next one's, but for chance
    double seconds = 120;
    uint32_t seed = 1;
};

/// One GPU's figures.
struct Figures {
    double worst_10_s = 0, worst_1_s = 0;  // points by which a share was off in any window of that length
    double busy = 0;                       // percent of the time
    double longest_wait = 0;               // milliseconds
    std::vector<double> shares;            // percent of what all took
};

Figures simulate(const Mix& mix, unsigned gpu = 0);
/// The worst of seeds 1 to 3.
Figures simulate_seeds(Mix mix, unsigned gpu = 0);

/// Participants that are never idle.
std::vector<Participant> never_idle(const std::vector<uint32_t>& weights, const std::vector<std::string>& kernels);

}  // namespace cuslice::tests
