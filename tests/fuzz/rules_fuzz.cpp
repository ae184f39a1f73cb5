// SPDX-License-Identifier: Apache-2.0
// The rules of the system with anything in their place, and a process that they may be for. Whatever is taken has a
// name and what its share needs, a rule that fits says so twice, and patterns fit what they fit by definition.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/rules/glob.h"
#include "config/rules/read.h"
#include "config/text_file.h"

using namespace cuslice;

namespace {

void expect(bool holds) {
    if (!holds)
        std::abort();
}

const rules::Identity& process() {
    static const rules::Identity identity = [] {
        rules::Identity made;
        made.user = 1000;
        made.groups[0] = 1000;
        made.groups[1] = 27;
        made.group_count = 2;
        made.user_doubt = made.groups_doubt = made.cgroups_doubt = rules::Doubt::none;
        made.cgroups.append("/user.slice/user-1000.slice/session-2.scope\n");
        made.executable.append("/usr/bin/python3.11");
        return made;
    }();
    return identity;
}

// A pattern's first character against the path's, then the rest against the rest.
bool fits_by_definition(std::string_view pattern, std::string_view path) {
    if (pattern.empty())
        return path.empty();
    if (pattern[0] == '*') {
        const size_t stars = std::min(pattern.find_first_not_of('*'), pattern.size());
        const size_t most = stars > 1 ? path.size() : std::min(path.find('/'), path.size());
        for (size_t taken = 0; taken <= most; taken++)
            if (fits_by_definition(pattern.substr(stars), path.substr(taken)))
                return true;
        return false;
    }
    const bool fits = !path.empty() && (pattern[0] == '?' ? path[0] != '/' : path[0] == pattern[0]);
    return fits && fits_by_definition(pattern.substr(1), path.substr(1));
}

// Each pattern against each other one, taken for a path, and against itself with slashes where anything else may stand.
// Short ones, as the definition takes long.
void check_patterns(std::string_view patterns) {
    constexpr size_t kLong = 32, kStars = 4;
    std::string_view pattern;
    for (std::string_view rest = patterns; take_line(rest, pattern);) {
        if (pattern.size() > kLong || std::count(pattern.begin(), pattern.end(), '*') > static_cast<int>(kStars))
            continue;
        std::string slashes(pattern);
        std::replace(slashes.begin(), slashes.end(), '?', '/');
        expect(rules::fits_glob(pattern, slashes) == fits_by_definition(pattern, slashes));
        std::string_view path;
        for (std::string_view others = patterns; take_line(others, path);)
            if (path.size() <= kLong)
                expect(rules::fits_glob(pattern, path) == fits_by_definition(pattern, path));
    }
}

bool match(void* context, const rules::Rule& rule, ConfigError&) {
    constexpr rules::AccountFiles kFiles{"root:x:0:0::/root:/bin/sh\nana:x:1000:1000::/home/ana:/bin/sh\n",
                                         "sudo:x:27:ana\nana:x:1000:\n"};
    const rules::Match found = rules::match(rule, process(), kFiles), again = rules::match(rule, process(), kFiles);
    expect(!rule.name.view().empty());
    expect(found.fits == again.fits && found.decided_by == again.decided_by);
    expect(rule.limit_count <= rules::Rule::kMaxLimits);
    expect(rule.share == rules::Share::nobody || rule.limit_count != 0);
    expect(rule.share != rules::Share::cgroup || !rule.cgroup.empty());
    check_patterns(rule.cgroup.lines());
    check_patterns(rule.executable.lines());
    if (!rules::fitting_cgroup(rule, process()).empty())
        expect(!rule.cgroup.empty());
    ++*static_cast<unsigned*>(context);
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static rules::Rule rule;
    static rules::Names* names = nullptr;
    delete names;
    names = new rules::Names;
    unsigned count = 0;
    ConfigError error;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const bool read =
        rules::read_rules(text, "/etc/cuslice/rules.d/1.toml", cuslice_toml_parse, *names, rule, match, &count, error);
    expect(read || !error.reason.empty());
    expect(count <= rules::Names::kMax);
    return 0;
}
