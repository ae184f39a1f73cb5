// SPDX-License-Identifier: Apache-2.0
// The variables CUSLICE_*.
#include "config/load.h"

#include "config/at_load.h"

namespace cuslice {
namespace {

constexpr std::string_view kStart = "CUSLICE_";

// Level 0: what is in the environment now is nearer than what a launcher handed on.
bool load_variable(Settings& settings, std::string_view name, std::string_view value, ConfigError& error) {
    if (const KeyTraits* traits = find_variable(name)) {
        return add_list(settings, traits->key, {Source::environment, 0}, name, value, error);
    }
    if (is_internal_variable(name))
        return true;
    Reason why;
    if (const LaterKey* later = find_later_variable(name)) {
        explain_later(*later, why);
    } else {
        explain_unknown(Spelling::variable, name, why);
    }
    return error.set(name, value, why);
}

}  // namespace

CUSLICE_AT_LOAD std::string_view variable(const char* const* environment, std::string_view name) {
    for (; *environment != nullptr; ++environment) {
        const std::string_view line(*environment);
        if (starts_with(line, name) && line.size() > name.size() && line[name.size()] == '=') {
            return {line.data() + name.size() + 1, line.size() - name.size() - 1};
        }
    }
    return {};
}

bool load_environment(Settings& settings, const char* const* environment, ConfigError& error) {
    for (; *environment != nullptr; ++environment) {
        const std::string_view line(*environment);
        if (!starts_with(line, kStart))
            continue;
        const size_t equals = line.find('=');
        if (equals == line.npos)
            continue;
        if (!load_variable(settings, slice(line, 0, equals), slice(line, equals + 1), error))
            return false;
    }
    return true;
}

}  // namespace cuslice
