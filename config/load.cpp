// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <string_view>

#include "config/cgroup_ceilings.h"
#include "config/combination.h"
#include "config/handover.h"
#include "config/resolve.h"
#include "config/rules/load.h"

namespace cuslice {
namespace {

// The fake driver takes its GPUs from the environment, which a preloaded library must not write to.
bool check_fake(const Settings& settings, ConfigError& error) {
    for (const Key key : {Key::fake, Key::fake_kernels}) {
        const Entry* entry = find(settings, key);
        if (entry == nullptr || entry->rank.source == Source::environment)
            continue;
        Reason why;
        why.assign(traits_of(key).name, " in a file works under cuslice run only: set ");
        why.append(traits_of(key).variable, " instead");
        return refuse_entry(*entry, why, error);
    }
    // The machine is a folder that the launcher makes and removes.
    if (const Entry* machine = find(settings, Key::fake_machine); machine != nullptr && find(settings, Key::fake))
        return refuse_entry(*machine, "works under cuslice run only: set CUSLICE_FAKE_DIR to a folder instead", error);
    return true;
}

// The launcher alone preloads what leads a runtime elsewhere. `handed_on`: its settings, without data where there are
// none.
bool check_redirect(const Settings& settings, std::string_view handed_on, ConfigError& error) {
    const bool by_launcher = handed_on.data() != nullptr;
    if (by_launcher || !redirects_runtime(settings))
        return true;
    const Entry* const asked = find(settings, Key::redirect_runtime);
    return refuse_entry(*asked, "works under cuslice run only", error);
}

// Costs two failing open calls if neither file exists.
bool load_files(Settings& settings, const char* const* environment, OpenToml open_toml, const SystemPlaces& system,
                ConfigError& error) {
    FileState unused;
    const Path user = user_file(environment);
    if (!user.empty() && !load_file(settings, user.c_str(), Source::user_file, open_toml, unused, error))
        return false;
    return load_system_file(settings, system, open_toml, unused, error);
}

}  // namespace

Path user_file(const char* const* environment) {
    Path path;
    // The XDG base directory specification: a relative path there is to be ignored.
    const std::string_view folder = variable(environment, "XDG_CONFIG_HOME");
    const std::string_view home = variable(environment, "HOME");
    if (starts_with(folder, "/")) {
        path.append(folder);
    } else if (starts_with(home, "/")) {
        path.append(home, "/.config");
    } else {
        return path;
    }
    path.append("/cuslice/cuslice.toml");
    if (path.cut())
        path.clear();
    return path;
}

bool load_in_program(Settings& settings, const char* const* environment, OpenToml open_toml, const SystemPlaces& system,
                     ConfigError& error) {
    // The launcher has read the files; reading them again could only disagree with what it showed and checked. But
    // anybody can write such a hand-over, so what limits everybody is not taken from there.
    const std::string_view handed_on = variable(environment, kHandOver);
    if (handed_on.data() != nullptr) {
        FileState unused;
        if (!read_handover(settings, handed_on, HandOverPart::all, error) ||
            !load_system_file(settings, system, open_toml, unused, error, Take::ceilings))
            return false;
    } else if (!load_files(settings, environment, open_toml, system, error)) {
        return false;
    }
    if (!rules::load_rules(settings, system, open_toml, error) || !load_cgroup_ceilings(settings, system, error))
        return false;
    if (!load_environment(settings, environment, error))
        return false;
    const std::string_view origin = traits_of(Key::config).variable;
    const std::string_view named = variable(environment, origin);
    if (named.data() != nullptr) {
        FileState unused;
        if (!load_named_file(settings, named.data(), origin, open_toml, unused, error))
            return false;
    }
    return check_fake(settings, error) && check_redirect(settings, handed_on, error) &&
           load_other_tools(settings, environment, error) && check_combination(settings, error);
}

}  // namespace cuslice
