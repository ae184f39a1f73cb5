// SPDX-License-Identifier: Apache-2.0
#include "config/rules/glob.h"

#include <algorithm>

#include "config/text.h"

namespace cuslice::rules {
namespace {

// Where in the pattern the characters so far can have led: no choice is ever taken back, however many stars there are.
struct Places {
    bool at[kMostOfPattern + 1] = {};
};

// A star may also stand for nothing.
void step_over_stars(std::string_view pattern, Places& places) {
    for (size_t i = 0; i < pattern.size(); ++i)
        if (places.at[i] && pattern[i] == '*')
            places.at[i + 1] = true;
}

// One of two stars in a row, which stand for slashes as well.
bool is_one_of_two(std::string_view pattern, size_t star) {
    const bool before_another = slice(pattern, star + 1, 1) == "*";
    const bool behind_another = star > 0 && pattern[star - 1] == '*';
    return before_another || behind_another;
}

bool star_takes(std::string_view pattern, size_t star, char character) {
    return character != '/' || is_one_of_two(pattern, star);
}

bool takes_once(char pattern, char character) { return pattern == '?' ? character != '/' : character == pattern; }

// One step in the path, from all places at once.
Places after(std::string_view pattern, const Places& now, char character) {
    Places next;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (!now.at[i])
            continue;
        if (pattern[i] == '*')
            next.at[i] |= star_takes(pattern, i, character);
        else if (takes_once(pattern[i], character))
            next.at[i + 1] = true;
    }
    step_over_stars(pattern, next);
    return next;
}

}  // namespace

bool fits_glob(std::string_view pattern, std::string_view path) {
    if (pattern.size() > kMostOfPattern)
        return false;
    Places now;
    now.at[0] = true;
    step_over_stars(pattern, now);
    for (const char character : path)
        now = after(pattern, now, character);
    return now.at[pattern.size()];
}

std::string_view outermost_fit(std::string_view pattern, std::string_view path) {
    if (!starts_with(path, "/"))
        return {};
    if (fits_glob(pattern, "/"))
        return slice(path, 0, 1);
    for (size_t end = 1; end < path.size();) {
        end = std::min(path.find('/', end + 1), path.size());
        if (fits_glob(pattern, slice(path, 0, end)))
            return slice(path, 0, end);
    }
    return {};
}

}  // namespace cuslice::rules
