// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/selection/host_environment.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cstring>

#include "config/at_load.h"
#include "config/handover.h"
#include "config/load.h"

extern char** environ;

namespace cuslice {

namespace {

constexpr const char* kNothing[] = {nullptr};

constinit PageVector<char> kept_text;  // lines, each with its NUL
constinit PageVector<size_t> kept_lines;

const char* const* now() { return environ && !has_more_rights() ? environ : kNothing; }

bool keep(const char* line) {
    const size_t start = kept_text.size();
    const char* const end = line + std::strlen(line) + 1;
    return std::all_of(line, end, [](char c) { return kept_text.push_back(c); }) && kept_lines.push_back(start);
}

std::string_view name_of(std::string_view line) { return slice(line, 0, line.find('=')); }

bool is_set(const char* const* lines, std::string_view name) { return variable(lines, name).data() != nullptr; }

// `lines`, then what was kept and isn't among them. False if there is no memory for it.
bool merge(const char* const* lines, PageVector<const char*>& merged) {
    for (const char* const* line = lines; *line; line++)
        if (!merged.push_back(*line))
            return false;
    const auto add = [&](size_t start) {
        const char* const line = kept_text.begin() + start;
        return is_set(lines, name_of(line)) || merged.push_back(line);
    };
    return std::all_of(kept_lines.begin(), kept_lines.end(), add) && merged.push_back(nullptr);
}

}  // namespace

CUSLICE_AT_LOAD bool has_more_rights() { return getauxval(AT_SECURE) != 0; }

CUSLICE_AT_LOAD void keep_handed_on() {
    if (!is_set(now(), kHandOver))
        return;
    for (const char* const* line = now(); *line; line++)
        if (starts_with(*line, "CUSLICE_"))
            keep(*line);
}

bool was_cleared() { return kept_lines.size() != 0 && !is_set(now(), kHandOver); }

HostEnvironment::HostEnvironment() : lines_(now()) {
    if (was_cleared() && merge(lines_, merged_))
        lines_ = merged_.begin();
}

}  // namespace cuslice
