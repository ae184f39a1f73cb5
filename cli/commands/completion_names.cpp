// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/completion_names.h"

#include <algorithm>
#include <filesystem>

#include "cli/launch/installation.h"
#include "cli/ledger/holders.h"
#include "cli/settings/launcher_settings.h"
#include "policy/ledger/users.h"

namespace cuslice::cli {
namespace {

bool is_plain(std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '_' || c == '-';
    };
    return !name.empty() && std::ranges::all_of(name, plain);
}

std::vector<std::string> names_in_ledgers(std::string_view kind, const Invocation& invocation) {
    ConfigError unused;
    Settings settings;
    if (!load_launcher(settings, invocation, unused))
        return {};
    const std::string folder = sharing_folder(settings, invocation.environment);
    const unsigned user = ledger::this_user(folder.c_str());
    std::vector<std::string> names;
    for (const Holder& holder : read_holders(folder).holding) {
        if (holder.user != user)
            continue;
        if (kind == "pids")
            names.push_back(std::to_string(holder.pid));
        if (kind == holder.kind + "s")
            names.push_back(holder.name);
    }
    return names;
}

}  // namespace

std::vector<std::string> profile_names(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code failed;
    for (std::filesystem::directory_iterator file(folder, failed), end; !failed && file != end; file.increment(failed))
        if (file->path().extension() == ".toml")
            names.push_back(file->path().stem().string());
    std::ranges::sort(names);
    return names;
}

std::vector<std::string> completion_names(std::string_view kind, const Invocation& invocation) {
    std::vector<std::string> names;
    if (kind == "profiles") {
        ConfigError unused;
        Installation installation;
        if (find_installation(installation, unused))
            names = profile_names(installation.fake_folder + "/profiles");
    } else {
        names = names_in_ledgers(kind, invocation);
    }
    std::erase_if(names, [](const std::string& name) { return !is_plain(name); });
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace cuslice::cli
