// SPDX-License-Identifier: Apache-2.0
#include "config/combination.h"

#include "config/resolve.h"

namespace cuslice {

namespace {

bool is_other_folder(const Settings& settings, const Entry& entry) {
    if (entry.key != Key::dir || entry.rank.source == Source::system_file)
        return false;
    return !is_hidden(settings, entry) && entry.value != sharing_folder(settings, {}).view();
}

bool is_split_plus_context(const Settings& settings, const Entry& entry) {
    const bool without_contexts = entry.key == Key::split && entry.plus_context;
    return without_contexts && !is_hidden(settings, entry);
}

// Another folder, or a context that doesn't count, would be a second slice.
bool check_shared_rule(const Settings& settings, ConfigError& error) {
    const std::string_view account = settings.shared_rule();
    if (account.empty())
        return true;
    const std::string_view rule = slice(account, 0, account.find('@'));
    for (const Entry& entry : settings.entries()) {
        Reason why;
        if (is_other_folder(settings, entry)) {
            why.append("rule ", rule, " shares one slice, in ");
            why.append(sharing_folder(settings, {}));
        }
        if (is_split_plus_context(settings, entry)) {
            why.append("+context can't be had under rule ", rule);
            why.append(", whose limit counts contexts as well");
        }
        if (!why.empty())
            return refuse_entry(entry, why, error);
    }
    return true;
}

// In the group's account a context counts, of whoever it is.
bool check_in_group(const Settings& settings, ConfigError& error) {
    constexpr std::string_view kWhy = "+context can't be had in a group, whose limit counts contexts as well";
    for (const Entry& entry : settings.entries()) {
        const bool without_contexts = entry.plus_context && !entry.ceiling;
        if (without_contexts && !is_hidden(settings, entry))
            return refuse_entry(entry, kWhy, error);
    }
    return true;
}

bool check_without_group(const Settings& settings, ConfigError& error) {
    constexpr std::string_view kWhy = "it needs a group, as --group NAME; for this program alone use --limit";
    for (const Entry& entry : settings.entries()) {
        const bool said_now = entry.rank.level == 0 && !is_file(entry.rank.source);
        if (entry.key == Key::group_limit && said_now)
            return refuse_entry(entry, kWhy, error);
    }
    return true;
}

}  // namespace

bool check_combination(const Settings& settings, ConfigError& error) {
    if (!check_shared_rule(settings, error))
        return false;
    const bool in_group = find(settings, Key::group) != nullptr;
    return in_group ? check_in_group(settings, error) : check_without_group(settings, error);
}

}  // namespace cuslice
