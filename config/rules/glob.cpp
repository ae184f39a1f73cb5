#include "config/rules/glob.h"

#include <cstring>

#include "config/text.h"

namespace cuslice::rules {
namespace {

// Where in the pattern the characters so far can have led: no choice is ever taken back, however many stars there are.
struct Places {
    bool at[kMostOfPattern + 1] = {};
};

// A star may also stand for nothing.
void step_over_stars(std::string_view pattern, Places& places) {
    for (std::size_t i = 0; i < pattern.size(); ++i)
        if (places.at[i] && pattern[i] == '*') places.at[i + 1] = true;
}

bool is_one_of(std::string_view pattern, std::size_t star) {
    return (star + 1 < pattern.size() && pattern[star + 1] == '*') || (star > 0 && pattern[star - 1] == '*');
}

}  // namespace

bool fits_glob(std::string_view pattern, std::string_view path) {
    if (pattern.size() > kMostOfPattern) return false;
    Places now;
    now.at[0] = true;
    step_over_stars(pattern, now);
    for (const char character : path) {
        Places next;
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            if (!now.at[i]) continue;
            if (pattern[i] == '*') {
                if (character != '/' || is_one_of(pattern, i)) next.at[i] = true;
            } else if (pattern[i] == character || (pattern[i] == '?' && character != '/')) {
                next.at[i + 1] = true;
            }
        }
        step_over_stars(pattern, next);
        now = next;
    }
    return now.at[pattern.size()];
}

std::string_view outermost_fit(std::string_view pattern, std::string_view path) {
    if (path.empty() || path[0] != '/') return {};
    if (fits_glob(pattern, "/")) return slice(path, 0, 1);
    for (std::size_t end = 1; end < path.size();) {
        const std::size_t next = path.find('/', end + 1);
        end = next == path.npos ? path.size() : next;
        if (fits_glob(pattern, slice(path, 0, end))) return slice(path, 0, end);
    }
    return {};
}

}  // namespace cuslice::rules
