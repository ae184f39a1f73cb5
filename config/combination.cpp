// SPDX-License-Identifier: Apache-2.0
#include "config/combination.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "config/resolve.h"
#include "config/share_caps.h"

namespace cuslice {

namespace {

bool is_other_folder(const Settings& settings, const Entry& entry) {
    if (entry.key != Key::dir || entry.rank.source == Source::system_file)
        return false;
    return !is_hidden(settings, entry) && entry.value != sharing_folder(settings, {}).view();
}

// A size in which contexts don't count.
bool is_plus_context(const Settings& settings, const Entry& entry) {
    return entry.plus_context && !entry.ceiling && !is_hidden(settings, entry);
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
            why.append("rule ", rule, " shares one slice, in ", sharing_folder(settings, {}));
            return refuse_entry(entry, why, error);
        }
        if (entry.key == Key::split && is_plus_context(settings, entry)) {
            why.append("+context can't be had under rule ", rule, ", whose limit counts contexts as well");
            return refuse_entry(entry, why, error);
        }
    }
    return true;
}

// Options and variables of this program's own, as opposed to files and what an outer job says.
bool is_own_group_limit(const Entry& entry) {
    const bool own = entry.rank.level == 0 && !is_file(entry.rank.source);
    return entry.key == Key::group_limit && own;
}

bool check_group(const Settings& settings, ConfigError& error) {
    // In the group's account a context counts, of whoever it is.
    constexpr std::string_view kInGroup = "+context can't be had in a group, whose limit counts contexts as well";
    constexpr std::string_view kAlone = "it needs a group, as --group NAME; for this program alone use --limit";
    const bool in_group = find(settings, Key::group) != nullptr;
    const std::span<const Entry> entries = settings.entries();
    const auto wrong = std::ranges::find_if(entries, [&](const Entry& entry) {
        return in_group ? is_plus_context(settings, entry) : is_own_group_limit(entry);
    });
    if (wrong == entries.end())
        return true;
    return refuse_entry(*wrong, in_group ? kInGroup : kAlone, error);
}

// On a fake GPU the fake's runtime takes the static one's place, and NVIDIA's does not start.
bool check_runtime(const Settings& settings, ConfigError& error) {
    constexpr std::string_view kFake = "a fake GPU has a runtime of its own";
    constexpr std::string_view kAlone = "it is for --redirect-runtime, which isn't asked for";
    const Entry* const runtime = find(settings, Key::runtime);
    if (runtime == nullptr)
        return true;
    if (find(settings, Key::fake) != nullptr)
        return refuse_entry(*runtime, kFake, error);
    return redirects_runtime(settings) || refuse_entry(*runtime, kAlone, error);
}

// A partition is no GPU of its own, on which others could be kept from working.
bool check_split(const Settings& settings, ConfigError& error) {
    const std::span<const Entry> entries = settings.entries();
    const auto split = std::ranges::find(entries, Key::split, &Entry::key);
    const auto share = std::ranges::find(entries, Key::share, &Entry::key);
    if (split == entries.end() || share == entries.end())
        return true;
    Reason why("not supported yet together with split, which is from ");
    return refuse_entry(*share, why.append(split->origin), error);
}

}  // namespace

bool check_combination(const Settings& settings, ConfigError& error) {
    constexpr decltype(&check_group) kChecks[] = {check_shared_rule, check_group, check_runtime, check_split,
                                                  check_share_caps};
    return std::ranges::all_of(kChecks, [&](auto* check) { return check(settings, error); });
}

}  // namespace cuslice
