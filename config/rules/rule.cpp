#include "config/rules/rule.h"

#include "config/rules/accounts.h"
#include "config/rules/glob.h"
#include "config/text_file.h"

namespace cuslice::rules {
namespace {

enum class Fit : std::uint8_t { no, unknown, yes };

// A name that the file doesn't have is nobody's. A number needs no file.
Fit fits_number(std::string_view values, std::string_view file, std::span<const unsigned> numbers, bool sure) {
    std::string_view value;
    while (take_line(values, value)) {
        unsigned number = 0;
        if (!parse_number(value, number) && !find_number(file, value, number)) continue;
        for (const unsigned own : numbers)
            if (own == number) return Fit::yes;
    }
    return sure ? Fit::no : Fit::unknown;
}

Fit fits_cgroup(std::string_view values, const Identity& identity) {
    std::string_view value;
    while (take_line(values, value)) {
        std::string_view paths = identity.cgroups.view(), path;
        while (take_line(paths, path))
            if (!outermost_fit(value, path).empty()) return Fit::yes;
    }
    return identity.cgroups_sure ? Fit::no : Fit::unknown;
}

Fit fits_executable(std::string_view values, std::string_view executable) {
    std::string_view value;
    while (take_line(values, value))
        if (fits_glob(value, executable)) return Fit::yes;
    return executable.empty() ? Fit::unknown : Fit::no;
}

}  // namespace

bool Values::add(std::string_view value) {
    FixedText<4096> longer = text_;
    if (longer.append(value).append('\n').cut()) return false;
    text_ = longer;
    return true;
}

bool is_for(const Rule& rule, const Identity& identity, const AccountFiles& files) {
    Fit fits[4] = {Fit::yes, Fit::yes, Fit::yes, Fit::yes};
    if (!rule.user.empty())
        fits[0] = fits_number(rule.user.lines(), files.users, {&identity.user, 1}, identity.user_sure);
    if (!rule.group.empty())
        fits[1] = fits_number(rule.group.lines(), files.groups, identity.group_list(), identity.groups_sure);
    if (!rule.cgroup.empty()) fits[2] = fits_cgroup(rule.cgroup.lines(), identity);
    if (!rule.executable.empty()) fits[3] = fits_executable(rule.executable.lines(), identity.executable.view());
    bool known = true;
    for (const Fit fit : fits) {
        if (fit == Fit::no) return false;
        known = known && fit == Fit::yes;
    }
    return known || rule.limit_count != 0;
}

}  // namespace cuslice::rules
