// SPDX-License-Identifier: Apache-2.0
#include "config/rules/rule.h"

#include <algorithm>

#include "config/rules/accounts.h"
#include "config/rules/glob.h"
#include "config/text_file.h"

namespace cuslice::rules {
namespace {

// A name that the file doesn't have is nobody's. A number needs no file.
bool fits_number(std::string_view values, std::string_view file, std::span<const unsigned> numbers) {
    std::string_view value;
    while (take_line(values, value)) {
        unsigned number = 0;
        if (!parse_number(value, number) && !find_number(file, value, number))
            continue;
        for (const unsigned own : numbers)
            if (own == number)
                return true;
    }
    return false;
}

bool fits_cgroup(const Rule& rule, const Identity& identity) { return !fitting_cgroup(rule, identity).empty(); }

bool fits_executable(std::string_view values, std::string_view executable) {
    std::string_view value;
    while (take_line(values, value))
        if (fits_glob(value, executable))
            return true;
    return false;
}

// Goes over the conditions of a rule in their order.
struct Examination {
    Match match{.fits = true};
    bool decided = false;

    void look(Condition condition, bool fits, Doubt doubt) {
        if (fits || decided)
            return;
        decided = doubt == Doubt::none;
        if (!decided && match.decided_by != Condition::none)
            return;
        match = {.fits = !decided, .decided_by = condition, .doubt = doubt};
    }
};

}  // namespace

bool Values::add(std::string_view value) {
    FixedText<4096> longer = text_;
    if (longer.append(value, '\n').cut())
        return false;
    text_ = longer;
    return true;
}

std::string_view word_of(const Limit& limit) {
    return std::ranges::find(kCeilingWords, limit.key, &CeilingWord::key)->name;
}

std::string_view fitting_cgroup(const Rule& rule, const Identity& identity) {
    std::string_view values = rule.cgroup.lines(), value;
    while (take_line(values, value)) {
        std::string_view paths = identity.cgroups, path;
        while (take_line(paths, path))
            if (const std::string_view fit = outermost_fit(value, path); !fit.empty())
                return fit;
    }
    return {};
}

Match match(const Rule& rule, const Identity& identity, const AccountFiles& files) {
    Examination all;
    if (!rule.user.empty())
        all.look(Condition::user, fits_number(rule.user.lines(), files.users, {&identity.user, 1}),
                 identity.user_doubt);
    if (!rule.group.empty())
        all.look(Condition::group, fits_number(rule.group.lines(), files.groups, identity.group_list()),
                 identity.groups_doubt);
    if (!rule.cgroup.empty())
        all.look(Condition::cgroup, fits_cgroup(rule, identity), identity.cgroups_doubt);
    if (!rule.executable.empty())
        all.look(Condition::executable, fits_executable(rule.executable.lines(), identity.executable),
                 identity.executable.empty() ? Doubt::unknown : Doubt::none);
    if (!all.decided && all.match.decided_by != Condition::none)
        all.match.fits = rule.limit_count != 0;
    return all.match;
}

}  // namespace cuslice::rules
