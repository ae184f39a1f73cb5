// SPDX-License-Identifier: Apache-2.0
// HAMi (hami-core, README): LIBCUDA_LOG_LEVEL is 0 to 2 for errors and warnings, 3 with infos, 4 for debugging. Its
// limits are a container's: the processes count in one file, which CUDA_DEVICE_MEMORY_SHARED_CACHE names.
#include "config/drop_in.h"

#include <algorithm>
#include <span>

#include "config/group_value.h"
#include "config/load.h"
#include "config/resolve.h"

namespace cuslice {
namespace {

constexpr std::string_view kLogLevel = "LIBCUDA_LOG_LEVEL";

bool add(Settings& settings, Key key, std::string_view value, std::string_view origin, ConfigError& error) {
    Reason why;
    const NewEntry entry{.key = key, .rank = {Source::other_tools, 0}, .value = value, .origin = origin};
    return settings.add(entry, why) || error.set(origin, value, why);
}

bool is_per_process(const Settings& settings) {
    const Entry* const entry = find(settings, Key::per_process);
    return entry != nullptr && entry->number != 0;
}

// Limits are the container's unless something else was asked for.
bool limits_container(const Settings& settings) {
    if (is_per_process(settings) || find(settings, Key::group) != nullptr)
        return false;
    const std::span<const Entry> entries = settings.entries();
    const bool limited = std::ranges::any_of(entries, is_amount, &Entry::key);
    return limited && std::ranges::none_of(entries, &Entry::plus_context);
}

// Empty: none that cuslice has.
std::string_view log_of(std::string_view level) {
    if (level.size() != 1)
        return {};
    if (level == "3")
        return "info";
    return level[0] >= '4' && level[0] <= '9' ? "debug" : std::string_view();
}

}  // namespace

bool load_drop_in(Settings& settings, const char* const* environment, ConfigError& error) {
    const bool good = !limits_container(settings) || add(settings, Key::group, kContainerGroup, kDropInName, error);
    if (!good)
        return false;
    const std::string_view log = log_of(variable(environment, kLogLevel));
    return log.empty() || add(settings, Key::log, log, kLogLevel, error);
}

}  // namespace cuslice
