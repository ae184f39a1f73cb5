#include "config/combination.h"

#include "config/resolve.h"

namespace cuslice {

namespace {

// Another folder, or a context that doesn't count, would be a second slice.
bool check_shared_rule(const Settings& settings, ConfigError& error) {
    const std::string_view account = settings.shared_rule();
    if (account.empty()) return true;
    const std::string_view rule = slice(account, 0, account.find('@'));
    for (const Entry& entry : settings.entries()) {
        Reason why;
        if (entry.key == Key::dir && entry.rank.source != Source::system_file && !is_hidden(settings, entry) &&
            entry.value != sharing_folder(settings, {}).view())
            why.append("rule ")
                .append(rule)
                .append(" shares one slice, in ")
                .append(sharing_folder(settings, {}).view());
        if (entry.key == Key::split && entry.plus_context && !is_hidden(settings, entry))
            why.append("+context can't be had under rule ")
                .append(rule)
                .append(", whose limit counts contexts as well");
        if (!why.empty()) return refuse_entry(entry, why.view(), error);
    }
    return true;
}

}  // namespace

bool check_combination(const Settings& settings, ConfigError& error) {
    if (!check_shared_rule(settings, error)) return false;
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
        return refuse_entry(entry, "it needs a group, as --group NAME; for this program alone use --limit", error);
    }
    return true;
}

}  // namespace cuslice
