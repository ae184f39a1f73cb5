// HAMi (hami-core, README): LIBCUDA_LOG_LEVEL is 0 to 2 for errors and warnings, 3 with infos, 4 for debugging. Its
// limits are a container's: the processes count in one file, which CUDA_DEVICE_MEMORY_SHARED_CACHE names.
#include "config/drop_in.h"

#include "config/group_value.h"
#include "config/load.h"
#include "config/resolve.h"

namespace cuslice {
namespace {

constexpr std::string_view kLogLevel = "LIBCUDA_LOG_LEVEL";

bool add(Settings& settings, Key key, std::string_view value, std::string_view origin, ConfigError& error) {
    Reason why;
    return settings.add({.key = key, .rank = {Source::other_tools, 0}, .value = value, .origin = origin}, why) ||
           error.set(origin, value, why.view());
}

bool is_limited(const Settings& settings) {
    for (const Entry& entry : settings.entries())
        if (is_amount(entry.key)) return true;
    return false;
}

bool has_plus_context(const Settings& settings) {
    for (const Entry& entry : settings.entries())
        if (entry.plus_context) return true;
    return false;
}

}  // namespace

bool load_drop_in(Settings& settings, const char* const* environment, ConfigError& error) {
    const Entry* per_process = find(settings, Key::per_process);
    const bool each = per_process != nullptr && per_process->number != 0;
    if (!each && find(settings, Key::group) == nullptr && is_limited(settings) && !has_plus_context(settings) &&
        !add(settings, Key::group, kContainerGroup, kDropInName, error)) {
        return false;
    }
    const std::string_view level = variable(environment, kLogLevel);
    if (level.size() != 1 || level[0] < '3' || level[0] > '9') return true;
    return add(settings, Key::log, level[0] == '3' ? "info" : "debug", kLogLevel, error);
}

}  // namespace cuslice
