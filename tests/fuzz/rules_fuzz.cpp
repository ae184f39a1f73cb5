// SPDX-License-Identifier: Apache-2.0
// The rules of the system with anything in their place, and a process that they may be for. Whatever is taken has a
// name, and a rule that fits says so twice.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/rules/read.h"

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

bool match(void* context, const rules::Rule& rule, ConfigError&) {
    constexpr rules::AccountFiles kFiles{"root:x:0:0::/root:/bin/sh\nana:x:1000:1000::/home/ana:/bin/sh\n",
                                         "sudo:x:27:ana\nana:x:1000:\n"};
    const rules::Match found = rules::match(rule, process(), kFiles), again = rules::match(rule, process(), kFiles);
    expect(!rule.name.view().empty());
    expect(found.fits == again.fits && found.decided_by == again.decided_by);
    expect(rule.limit_count <= rules::Rule::kMaxLimits);
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
