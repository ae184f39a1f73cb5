#include "config/outer_job.h"

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
        case Source::user_file:
        case Source::system_file:
            return true;
        default:
            return false;  // other tools' limits and the system's ceilings hold for the new job by themselves
    }
}

bool is_hidden_in_outer(std::span<const Entry> entries, const Entry& entry, bool handed_on) {
    for (const Entry& other : entries) {
        if (other.ceiling || !is_amount(other.key) || !(other.rank < entry.rank) || !is_outers(other, handed_on))
            continue;
        if (other.selector.kind == GpuSelector::Kind::every || other.selector.same_as(entry.selector)) return true;
    }
    return false;
}

}  // namespace

bool add_outer_job(Settings& settings, bool handed_on, ConfigError& error) {
    const std::span<const Entry> entries = settings.entries();  // what is added comes behind them
    for (const Entry& entry : entries)
        if (entry.key == Key::per_process && entry.number != 0 && is_outers(entry, handed_on)) return true;
    for (const Entry& entry : entries) {
        if (entry.ceiling || !is_amount(entry.key) || !is_outers(entry, handed_on) ||
            is_hidden_in_outer(entries, entry, handed_on))
            continue;
        FixedText<4400> origin(entry.origin);
        origin.append(" of the outer job");
        const NewEntry added{.key = entry.key,
                             .ceiling = true,
                             .rank = {Source::outer_job, 0},
                             .selector = entry.selector,
                             .value = entry.value,
                             .origin = origin.view()};
        if (Reason why; !settings.add(added, why)) return refuse_entry(entry, why.view(), error);
    }
    return true;
}

}  // namespace cuslice
