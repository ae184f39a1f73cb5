// SPDX-License-Identifier: Apache-2.0
// Shares of a GPU's time.
#include <algorithm>

#include "config/percent.h"
#include "config/resolve.h"

namespace cuslice {
namespace {

constexpr uint64_t kNanosecondsOfMillisecond = 1'000'000;

// A rule's percent is what a job gets that asks for none, and the most that it may ask for.
const Entry* percent_for(const Settings& settings, Key key, const GpuIdentity& gpu) {
    const Entry* const asked = find(settings, key, gpu);
    const Entry* const most = find_ceiling(settings, key, Source::rule, gpu);
    if (asked == nullptr || most == nullptr)
        return asked == nullptr ? most : asked;
    return most->number < asked->number ? most : asked;
}

uint64_t default_of(Key key) {
    uint64_t number = 0;
    bool automatic = false;
    Reason unused;
    parse_value(key, traits_of(key).default_value, number, automatic, unused);
    return number;
}

}  // namespace

std::optional<TimeShare> share_for(const Settings& settings, const GpuIdentity& gpu) {
    const Entry* const share = percent_for(settings, Key::share, gpu);
    if (share == nullptr)
        return std::nullopt;
    const Entry* const cap = percent_for(settings, Key::share_cap, gpu);
    const uint64_t most = cap == nullptr ? kWholePercent : cap->number;
    return TimeShare{.weight = static_cast<uint32_t>(std::min(share->number, most)),
                     .cap = static_cast<uint32_t>(most),
                     .origin = share->origin};
}

bool shares_time(const Settings& settings) {
    return std::ranges::find(settings.entries(), Key::share, &Entry::key) != settings.entries().end();
}

uint64_t share_quantum_of(const Settings& settings) {
    const Entry* const entry = find(settings, Key::share_quantum);
    const uint64_t milliseconds = entry == nullptr ? default_of(Key::share_quantum) : entry->number;
    return milliseconds * kNanosecondsOfMillisecond;
}

}  // namespace cuslice
