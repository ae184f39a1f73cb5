#include "config/combination.h"

#include "config/resolve.h"

namespace cuslice {

bool check_combination(const Settings& settings, ConfigError& error) {
    if (find(settings, Key::group) != nullptr) return true;
    for (const Entry& entry : settings.entries()) {
        const bool said_now = entry.rank.level == 0 && !is_file(entry.rank.source);
        if (entry.key != Key::group_limit || !said_now) continue;
        return refuse_entry(entry, "a limit of which group? it needs --group NAME; for this program alone use --limit",
                            error);
    }
    return true;
}

}  // namespace cuslice
