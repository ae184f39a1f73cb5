// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/launcher_settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/gpus/fake_machine.h"
#include "config/cgroup_ceilings.h"
#include "config/combination.h"
#include "config/handover.h"
#include "config/outer_job.h"
#include "config/resolve.h"
#include "config/rules/load.h"

namespace cuslice::cli {
namespace {

// Not normalised: through a symbolic link a/../b is not b.
std::string absolute(const std::string& path) {
    if (path.empty() || path.front() == '/')
        return path;
    std::error_code failed;
    const std::filesystem::path current = std::filesystem::current_path(failed);
    return failed ? path : current.string() + "/" + path;
}

// The value of a flag or a variable, its path made absolute where it has one.
std::string settle_path(Key key, const std::string& value) {
    switch (key) {
        case Key::driver:
        case Key::runtime:
        case Key::record:
            return absolute(value);
        case Key::fake:
            return value.find('/') != value.npos || value.ends_with(".toml") ? absolute(value) : value;
        case Key::log: {
            const size_t colon = value.find(':');
            return colon == value.npos ? value : value.substr(0, colon + 1) + absolute(value.substr(colon + 1));
        }
        default:
            return value;
    }
}

// Before the settings are read, so that messages and origins show what will be used.
Environment settle_paths(Environment environment) {
    for (const KeyTraits& traits : all_keys()) {
        const auto value = environment.get(traits.variable);
        if (value)
            environment.set(traits.variable, settle_path(traits.key, *value));
    }
    return environment;
}

cuslice_toml_parse_function* linked_parser(Reason&) { return cuslice_toml_parse; }

// Kept in the list of files even if it is refused.
bool read_file(Settings& settings, const std::string& path, Source source, std::vector<LookedAt>& files,
               ConfigError& error) {
    FileState state = FileState::absent;
    const bool good = load_file(settings, path.c_str(), source, linked_parser, state, error);
    files.push_back({source, path, state});
    return good;
}

bool read_system_file(Settings& settings, const SystemPlaces& system, std::vector<LookedAt>& files,
                      ConfigError& error) {
    FileState state = FileState::absent;
    const bool good = load_system_file(settings, system, linked_parser, state, error);
    files.push_back({Source::system_file, system.file, state});
    return good;
}

bool read_named_file(Settings& settings, const Entry& named, std::vector<LookedAt>& files, ConfigError& error) {
    FileState state = FileState::absent;
    const std::string path(named.value), origin(named.origin);
    const bool good = load_named_file(settings, path.c_str(), origin, linked_parser, state, error);
    files.push_back({Source::config_file, path, state});
    return good;
}

// The current folder may be somebody else's work (an archive, a colleague's): its settings may choose limits, but no
// code to run and no files to write to.
bool check_current_folder(const Settings& settings, ConfigError& error) {
    for (const Entry& entry : settings.entries()) {
        if (entry.rank.source != Source::current_folder || entry.rank.level != 0)
            continue;
        std::string_view why;
        if (entry.key == Key::driver)
            why = "driver is not taken from the current folder, which could choose code to run: use --driver";
        if (entry.key == Key::record)
            why = "record is not taken from the current folder, which could have files made anywhere: use --record";
        if (entry.key == Key::dir)
            why = "dir is not taken from the current folder, which could have folders made anywhere: use --dir";
        if (entry.key == Key::log && entry.value.find(':') != entry.value.npos)
            why = "a log file is not taken from the current folder, which could choose any of yours: use --log";
        if (!why.empty())
            return refuse_entry(entry, why, error);
    }
    return true;
}

// The file itself is made by the first line that is written to it, perhaps never.
bool check_log(const Settings& settings, ConfigError& error) {
    const Entry* entry = find(settings, Key::log);
    const std::string file(log_for(settings).file);
    if (entry == nullptr || file.empty())
        return true;
    struct stat status {};
    int code = 0;
    if (::stat(file.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode))
            code = EISDIR;
        if (code == 0 && ::access(file.c_str(), W_OK) != 0)
            code = errno;
    } else if (::access(file.substr(0, file.rfind('/') + 1).c_str(), W_OK | X_OK) != 0) {
        code = errno;
    }
    return code == 0 || refuse_entry(*entry, std::string("cannot be written: ") + std::strerror(code), error);
}

bool check_settings(const Settings& settings, const Installation& installation, const Environment& environment,
                    ContextSizes& contexts, ConfigError& error) {
    if (!check_log(settings, error))
        return false;
    const Entry* fake = find(settings, Key::fake);
    if (fake != nullptr)
        return check_fake(*fake, installation, environment, contexts, error);
    for (const Key key : {Key::driver, Key::runtime}) {
        const Entry* const library = find(settings, key);
        if (library != nullptr && ::access(std::string(library->value).c_str(), R_OK) != 0)
            return refuse_entry(*library, "no such file, or it may not be read", error);
    }
    return true;
}

}  // namespace

// Tests' own places belong to whoever runs them.
SystemPlaces places_of(const Invocation& invocation) {
    const bool genuine = std::string_view(invocation.system_file) == kSystemFile;
    return {invocation.system_file, invocation.system_root.c_str(), genuine ? 0 : ::geteuid()};
}

bool load_launcher(Settings& settings, const std::vector<Flag>& flags, const Environment& environment,
                   const SystemPlaces& system, std::vector<LookedAt>& files, ConfigError& error) {
    for (const Flag& flag : flags) {
        const std::string origin = "--" + std::string(traits_of(flag.key).name);
        if (!add_list(settings, flag.key, {Source::flag, 0}, origin, settle_path(flag.key, flag.value), error)) {
            return false;
        }
    }
    Environment settled = settle_paths(environment);
    const std::vector<char*> lines = settled.pointers();
    const auto outer = settled.get(kHandOver);
    if (outer && !read_handover(settings, *outer, HandOverPart::without_files, error))
        return false;
    if (!load_environment(settings, lines.data(), error))
        return false;
    if (const Entry* named = find(settings, Key::config)) {
        if (!read_named_file(settings, *named, files, error))
            return false;
    }
    if (!read_file(settings, absolute("cuslice.toml"), Source::current_folder, files, error) ||
        !check_current_folder(settings, error)) {
        return false;
    }
    const Path user = user_file(lines.data());
    if (!user.empty() && !read_file(settings, user.c_str(), Source::user_file, files, error))
        return false;
    if (!read_system_file(settings, system, files, error))
        return false;
    const bool in_job = !settled.get(kJobVariable).value_or("").empty();
    if (in_job && !add_outer_job(settings, outer.has_value(), error))
        return false;
    return rules::load_rules(settings, system, linked_parser, error) && load_cgroup_ceilings(settings, system, error) &&
           load_other_tools(settings, lines.data(), error) && check_combination(settings, error);
}

bool load_launcher(Settings& settings, const Invocation& invocation, ConfigError& error) {
    std::vector<LookedAt> files;
    return load_launcher(settings, invocation.arguments.flags, invocation.environment, places_of(invocation), files,
                         error);
}

std::string sharing_folder(const Settings& settings, const Environment& environment) {
    std::string machine = named_fake_machine(settings, environment);
    if (machine.empty())
        machine = environment.get(kFakeFolderVariable).value_or("");
    return std::string(sharing_folder(settings, machine));
}

bool load_launch(Launch& launch, const Invocation& invocation, ConfigError& error) {
    const Environment& environment = invocation.environment;
    return load_launcher(launch.settings, invocation.arguments.flags, environment, places_of(invocation), launch.files,
                         error) &&
           find_installation(launch.installation, error) &&
           check_settings(launch.settings, launch.installation, environment, launch.contexts, error);
}

}  // namespace cuslice::cli
