// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/finding.h"

#include <algorithm>

#include "cli/text/json.h"
#include "config/printable.h"

namespace cuslice::cli::doctor {
namespace {

constexpr size_t kColumns = 80;
// Behind the longest of the grades.
constexpr size_t kIndent = 9;

// Characters of UTF-8, as a terminal counts most of them.
size_t width_of(std::string_view word) {
    return static_cast<size_t>(
        std::count_if(word.begin(), word.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

// `text` behind `head`, in lines that are indented as it is.
void append_wrapped(std::string& to, const std::string& head, std::string_view text) {
    to.append(head).append(kIndent - head.size(), ' ');
    size_t column = kIndent;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (column > kIndent && column + 1 + width_of(word) > kColumns) {
            to.append("\n").append(kIndent, ' ');
            column = kIndent;
        }
        if (column > kIndent) {
            to += ' ';
            ++column;
        }
        to.append(word);
        column += width_of(word);
    }
    to += '\n';
}

}  // namespace

void Findings::ok(std::string name, std::string seen) {
    all_.push_back({Grade::ok, std::move(name), std::move(seen), {}});
}

void Findings::warning(std::string name, std::string seen, std::string advice) {
    all_.push_back({Grade::warning, std::move(name), std::move(seen), std::move(advice)});
}

void Findings::problem(std::string name, std::string seen, std::string advice) {
    all_.push_back({Grade::problem, std::move(name), std::move(seen), std::move(advice)});
}

bool Findings::any_since(size_t first) const {
    return std::any_of(all_.begin() + static_cast<ptrdiff_t>(first), all_.end(),
                       [](const Finding& finding) { return finding.grade != Grade::ok; });
}

Grade Findings::worst() const {
    Grade worst = Grade::ok;
    for (const Finding& finding : all_)
        worst = std::max(worst, finding.grade);
    return worst;
}

std::string_view name_of(Grade grade) {
    return grade == Grade::ok ? "ok" : grade == Grade::warning ? "warning" : "problem";
}

std::string as_text(const Findings& findings) {
    std::string text;
    for (const Finding& finding : findings.all()) {
        std::string paragraph = finding.name + ": ";
        append_printable(paragraph, finding.seen);
        paragraph.append(".");
        if (!finding.advice.empty())
            append_printable(paragraph.append(" "), finding.advice).append(".");
        append_wrapped(text, std::string(name_of(finding.grade)), paragraph);
    }
    return text;
}

std::string as_json(const Findings& findings) {
    Json list = Json::array();
    for (const Finding& finding : findings.all()) {
        list.push_back({{"grade", name_of(finding.grade)},
                        {"name", finding.name},
                        {"seen", finding.seen},
                        {"advice", finding.advice.empty() ? Json() : Json(finding.advice)}});
    }
    return json_text({{"version", 1}, {"findings", list}});
}

}  // namespace cuslice::cli::doctor
