// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/environment.h"

#include <algorithm>

namespace cuslice::cli {
namespace {

bool is_line_of(std::string_view line, std::string_view name) {
    return line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=';
}

}  // namespace

Environment::Environment(const char* const* lines) {
    for (; *lines != nullptr; ++lines)
        lines_.emplace_back(*lines);
}

std::optional<std::string> Environment::get(std::string_view name) const {
    for (const std::string& line : lines_) {
        if (is_line_of(line, name))
            return line.substr(name.size() + 1);
    }
    return std::nullopt;
}

void Environment::set(std::string_view name, std::string_view value) {
    std::string line(name);
    line.append("=").append(value);
    const auto is_it = [&](const std::string& other) { return is_line_of(other, name); };
    const auto place = std::find_if(lines_.begin(), lines_.end(), is_it);
    if (place == lines_.end()) {
        lines_.push_back(std::move(line));
        return;
    }
    *place = std::move(line);
    // getenv finds the first of several, others the last: one must be left.
    lines_.erase(std::remove_if(place + 1, lines_.end(), is_it), lines_.end());
}

void Environment::unset(std::string_view name) {
    std::erase_if(lines_, [&](const std::string& line) { return is_line_of(line, name); });
}

std::vector<char*> Environment::pointers() {
    std::vector<char*> pointers;
    for (std::string& line : lines_)
        pointers.push_back(line.data());
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace cuslice::cli
