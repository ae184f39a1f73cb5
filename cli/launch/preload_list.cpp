// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/preload_list.h"

#include <algorithm>
#include <cstddef>

namespace cuslice::cli {
namespace {

constexpr std::string_view kBetween = " \t:";

// Calls entry(word) for each path of a line, which has no comment.
template <typename Entry>
void each_path(std::string_view line, Entry entry) {
    for (size_t begin = line.find_first_not_of(kBetween); begin != line.npos;) {
        const size_t end = line.find_first_of(kBetween, begin);
        entry(line.substr(begin, end - begin));
        begin = end == line.npos ? end : line.find_first_not_of(kBetween, end);
    }
}

template <typename Line>
void each_line(std::string_view text, Line line) {
    while (!text.empty()) {
        const size_t end = text.find('\n');
        line(text.substr(0, end));
        text = end == text.npos ? std::string_view() : text.substr(end + 1);
    }
}

}  // namespace

bool lists(std::string_view text, std::string_view path) {
    bool found = false;
    each_line(text, [&](std::string_view line) {
        each_path(line.substr(0, line.find('#')), [&](std::string_view word) { found = found || word == path; });
    });
    return found;
}

std::string with_path(std::string_view text, std::string_view path) {
    std::string result(text);
    if (lists(text, path))
        return result;
    if (!result.empty() && result.back() != '\n')
        result += '\n';
    return result.append(path).append("\n");
}

std::string without_path(std::string_view text, std::string_view path) {
    std::string result;
    each_line(text, [&](std::string_view line) {
        const size_t comment = std::min(line.find('#'), line.size());
        const std::string_view before = line.substr(0, comment);
        if (!lists(before, path)) {
            result.append(line).append("\n");
            return;
        }
        std::string kept;
        each_path(before, [&](std::string_view word) {
            if (word != path)
                kept.append(kept.empty() ? "" : " ").append(word);
        });
        if (comment < line.size())
            kept.append(kept.empty() ? "" : " ").append(line.substr(comment));
        if (!kept.empty())
            result.append(kept).append("\n");
    });
    return result;
}

}  // namespace cuslice::cli
