// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/script.h"

#include <algorithm>
#include <cstddef>
#include <sstream>

namespace cuslice::cli::doctor {
namespace {

constexpr std::string_view kName = "LD_PRELOAD";

bool part_of_name(char one) { return one == '_' || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9'); }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// `rest` follows the name: "=value" in a shell, "\"] = value" in Python, whose value has nothing of the old one.
bool replaces(std::string_view rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of("\"'])} \t"), rest.size()));
    return rest.starts_with("=") && !rest.starts_with("==") && !contains(rest, kName);
}

bool undoes(std::string_view line) {
    if (contains(line, "env -i") || contains(line, "env - "))
        return true;
    for (size_t at = line.find(kName); at != line.npos; at = line.find(kName, at + 1)) {
        const std::string_view before = line.substr(0, at), rest = line.substr(at + kName.size());
        if (!before.empty() && part_of_name(before.back()))
            continue;
        if (!rest.empty() && part_of_name(rest.front()))
            continue;
        const bool removed = contains(before, "unset ") || contains(before, "env -u") || contains(before, "--unset=");
        // "$LD_PRELOAD" reads it.
        const bool read = before.ends_with("$") || before.ends_with("${");
        if (removed || (!read && replaces(rest)))
            return true;
    }
    return false;
}

}  // namespace

std::string line_without_preload(std::string_view script) {
    std::istringstream lines{std::string(script)};
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const size_t first = line.find_first_not_of(" \t");
        if (first == line.npos || line[first] == '#')
            continue;
        if (undoes(std::string_view(line).substr(first)))
            return std::to_string(number) + ": " + line.substr(first);
    }
    return {};
}

}  // namespace cuslice::cli::doctor
