// SPDX-License-Identifier: Apache-2.0
#include "config/outer_job.h"

#include <algorithm>

namespace cuslice {
namespace {

// An option is meant for the new job, and so is the current folder. A variable is the outer job's only where no
// launcher has handed it on.
bool is_outers(const Entry& entry, bool handed_on) {
    switch (entry.rank.source) {
        case Source::flag:
        case Source::current_folder:
            return entry.rank.level != 0;
        case Source::environment:
        case Source::config_file:
            return !handed_on || entry.rank.level != 0;
        default:
            return is_file(entry.rank.source);  // what isn't written by users holds for the new job by itself
    }
}

bool is_outers_amount(const Entry& entry, bool handed_on) {
    const bool amount = is_amount(entry.key) && !entry.ceiling;
    return amount && is_outers(entry, handed_on);
}

bool is_hidden_in_outer(std::span<const Entry> entries, const Entry& entry, bool handed_on) {
    return std::ranges::any_of(entries, [&](const Entry& other) {
        const bool stronger = other.rank < entry.rank && is_outers_amount(other, handed_on);
        return stronger && other.selector.covers(entry.selector);
    });
}

// Then the outer launcher made no job of its own.
bool is_outers_per_process(const Entry& entry, bool handed_on) {
    const bool per_process = entry.key == Key::per_process && entry.number != 0;
    return per_process && is_outers(entry, handed_on);
}

bool add_ceiling(Settings& settings, const Entry& entry, ConfigError& error) {
    FixedText<4400> origin(entry.origin);
    origin.append(" of the outer job");
    const NewEntry added{.key = entry.key,
                         .ceiling = true,
                         .rank = {Source::outer_job, 0},
                         .selector = entry.selector,
                         .value = entry.value,
                         .origin = origin.view()};
    Reason why;
    return settings.add(added, why) || refuse_entry(entry, why, error);
}

}  // namespace

bool add_outer_job(Settings& settings, bool handed_on, ConfigError& error) {
    const std::span<const Entry> entries = settings.entries();  // what is added comes behind them
    if (std::ranges::any_of(entries, [&](const Entry& entry) { return is_outers_per_process(entry, handed_on); }))
        return true;
    return std::ranges::all_of(entries, [&](const Entry& entry) {
        const bool holds = is_outers_amount(entry, handed_on) && !is_hidden_in_outer(entries, entry, handed_on);
        return !holds || add_ceiling(settings, entry, error);
    });
}

}  // namespace cuslice
