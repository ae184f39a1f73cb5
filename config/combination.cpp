#include "config/combination.h"

#include "config/resolve.h"

namespace cuslice {

bool check_combination(const Settings& settings, ConfigError& error) {
    if (find(settings, Key::group) != nullptr) {
        // In the group's account a context counts, of whoever it is.
        for (const Entry& entry : settings.entries())
            if (entry.plus_context && !entry.ceiling && !is_hidden(settings, entry))
                return refuse_entry(entry, "+context can't be had in a group, whose limit counts contexts as well",
                                    error);
        return true;
    }
    for (const Entry& entry : settings.entries()) {
        const bool said_now = entry.rank.level == 0 && !is_file(entry.rank.source);
        if (entry.key != Key::group_limit || !said_now) continue;
        return refuse_entry(entry, "a limit of which group? it needs --group NAME; for this program alone use --limit",
                            error);
    }
    return true;
}

}  // namespace cuslice
