// SPDX-License-Identifier: Apache-2.0
#include "fake/duration.h"

#include <time.h>

namespace cuslice::fake {

bool parse_duration(const std::string& text, uint64_t& nanoseconds) {
    const auto unit_at = text.find_first_not_of("0123456789");
    if (unit_at == 0 || unit_at == std::string::npos || unit_at > 18)
        return false;
    nanoseconds = std::stoull(text.substr(0, unit_at));
    const std::string unit = text.substr(unit_at);
    const uint64_t factor = unit == "ns"   ? 1
                            : unit == "us" ? 1000
                            : unit == "ms" ? 1000000
                            : unit == "s"  ? 1000000000
                                           : 0;
    if (factor == 0 || nanoseconds > 3600ULL * 1000000000 / factor)
        return false;
    nanoseconds *= factor;
    return true;
}

void pause_for(uint64_t nanoseconds) {
    if (nanoseconds == 0)
        return;
    timespec start{}, now{};
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (nanoseconds >= 200000) {
        const timespec span{static_cast<time_t>(nanoseconds / 1000000000), static_cast<long>(nanoseconds % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
        return;
    }
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (static_cast<uint64_t>((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec) <
             nanoseconds);
}

}  // namespace cuslice::fake
