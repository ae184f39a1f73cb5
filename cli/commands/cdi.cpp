// SPDX-License-Identifier: Apache-2.0
// cuslice cdi: a specification of the Container Device Interface, by which Podman, Docker, containerd and CRI-O put a
// slice into a container: what is mounted, and which variables are set. A device for each fraction and each limit.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "cli/commands.h"
#include "cli/gpus/fake_check.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/json.h"
#include "cli/text/report.h"
#include "cli/text/write_file.h"
#include "config/container_group.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

// The first version that takes names of devices that begin with a digit.
constexpr const char* kCdiVersion = "0.5.0";
constexpr const char* kKind = "cuslice/slice";
constexpr const char* kUsual[] = {"0.1", "0.2", "0.25", "0.3", "0.4", "0.5", "0.6", "0.7", "0.75", "0.8", "0.9"};

bool names_device(const Flag& flag) { return is_amount(flag.key); }

bool given(const std::vector<Flag>& flags, Key key) {
    return std::ranges::any_of(flags, [key](const Flag& flag) { return flag.key == key; });
}

// A name has letters, digits, dashes, underscores and dots, and begins and ends with a letter or a digit.
std::string device_name(const std::string& value) {
    std::string name;
    for (const char c : value) {
        const bool alone = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '-';
        if (c == '%')
            name += "-percent";
        else if (c == '*')
            name += "all";
        else if (c == ',')
            name += '_';
        else
            name += alone ? c : '-';
    }
    return name.starts_with('.') ? "0" + name : name;
}

// Only what the command itself is told is written down. nullptr for what the environment or a file says.
const Entry* told(const Settings& settings, Key key) {
    const Entry* entry = find(settings, key);
    return entry != nullptr && entry->rank == Rank{Source::flag, 0} ? entry : nullptr;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

Json mount(const std::string& host, const std::string& container, const char* how) {
    Json options = {how, "nosuid", "nodev", "rbind", "rprivate"};
    if (std::strcmp(how, "rw") == 0)
        options.push_back("noexec");
    return {{"hostPath", host}, {"containerPath", container}, {"options", options}};
}

// The variables of all devices. An option that was given several times is one variable.
std::vector<std::string> variables_of(const std::vector<Flag>& flags) {
    std::map<Key, std::string> values;
    for (const Flag& flag : flags) {
        if (names_device(flag) || flag.key == Key::dir || flag.key == Key::per_process)
            continue;
        std::string& value = values[flag.key];
        value += (value.empty() ? "" : ",") + flag.value;
    }
    std::vector<std::string> lines;
    for (const auto& [key, value] : values)
        lines.push_back(std::string(traits_of(key).variable) + "=" + value);
    return lines;
}

std::string preload_list(const Installation& installation, const Settings& settings, const std::vector<Flag>& flags) {
    std::string list = installation.library;
    if (given(flags, Key::split))
        list += ":" + installation.runtime_shim;
    if (told(settings, Key::fake) != nullptr)
        for (const std::string& path : installation.fake_preloads())
            list += ":" + path;
    return list;
}

// Edits for every container that gets one of the devices.
Json common_edits(const Invocation& invocation, const Settings& settings, const Installation& installation,
                  const std::vector<Flag>& flags) {
    const std::string libraries = folder_of(installation.library);
    const std::string ledgers = sharing_folder(settings, invocation.environment);
    const bool fake = told(settings, Key::fake) != nullptr;
    Json mounts = Json::array(), env = Json::array();
    mounts.push_back(mount(libraries, libraries, "ro"));
    mounts.push_back(mount(installation.executable, installation.executable, "ro"));
    // Ceilings hold in containers as well.
    const std::string system(invocation.system_file), inside(kSystemFile);
    const std::string rules = folder_of(system) + "/rules.d";
    if (::access(system.c_str(), F_OK) == 0 || ::access(rules.c_str(), F_OK) == 0)
        mounts.push_back(mount(folder_of(system), folder_of(inside), "ro"));
    env.push_back("LD_PRELOAD=" + preload_list(installation, settings, flags));
    if (fake)
        env.push_back("LD_LIBRARY_PATH=" + installation.fake_folder);
    for (const std::string& line : variables_of(flags))
        env.push_back(line);
    // Fake GPUs are in a machine of their own in each container, and have nothing to share with others.
    if (!fake || find(settings, Key::dir) != nullptr) {
        mounts.push_back(mount(ledgers, ledgers, "rw"));
        env.push_back(std::string(traits_of(Key::dir).variable) + "=" + ledgers);
        if (::access(ledgers.c_str(), F_OK) != 0)
            warn(ledgers +
                 ": no such folder yet, and no container with a slice starts without it: install -d -m 1777 " +
                 ledgers);
    }
    return {{"env", env}, {"mounts", mounts}};
}

bool check_fakes(const Invocation& invocation, const Settings& settings, const Installation& installation,
                 ConfigError& error) {
    const Entry* fake = told(settings, Key::fake);
    if (fake == nullptr)
        return true;
    if (fake->value.find('/') != fake->value.npos || fake->value.ends_with(".toml"))
        return refuse_entry(*fake, "a file is not in the container: name profiles, as 4xh200", error);
    ContextSizes unused;
    return check_fake(*fake, installation, invocation.environment, unused, error);
}

// Each device with what holds for all, as a program in the container will read it.
bool add_device(const Invocation& invocation, const std::vector<Flag>& flags, const Flag& amount, Json& devices,
                ConfigError& error) {
    Settings settings;
    std::vector<LookedAt> files;
    std::vector<Flag> all = flags;
    std::erase_if(all, names_device);
    all.push_back(amount);
    if (!load_launcher(settings, all, invocation.environment, places_of(invocation), files, error))
        return false;
    const std::string name = device_name(amount.value);
    const auto same = [&](const Json& device) { return device["name"] == name; };
    if (std::ranges::any_of(devices, same))
        return error.set("--" + std::string(traits_of(amount.key).name), amount.value,
                         "two devices would have the name " + name);
    const std::string line = std::string(traits_of(amount.key).variable) + "=" + amount.value;
    devices.push_back({{"name", name}, {"containerEdits", {{"env", {line}}}}});
    return true;
}

}  // namespace

int write_cdi(const Invocation& invocation) {
    ConfigError error;
    Installation installation;
    if (!find_installation(installation, error))
        return fail(error, kConfig);
    std::vector<Flag> flags = invocation.arguments.flags;
    if (std::ranges::none_of(flags, names_device))
        for (const char* usual : kUsual)
            flags.push_back({Key::fraction, usual});
    // Nobody knows a container's name before there is one.
    if (!given(flags, Key::group) && !given(flags, Key::per_process))
        flags.push_back({Key::group, std::string(kContainerGroup)});

    Settings settings;
    std::vector<LookedAt> files;
    std::vector<Flag> common = flags;
    std::erase_if(common, names_device);
    if (!load_launcher(settings, common, invocation.environment, places_of(invocation), files, error) ||
        !check_fakes(invocation, settings, installation, error))
        return fail(error, kConfig);
    Json devices = Json::array();
    for (const Flag& flag : flags)
        if (names_device(flag) && !add_device(invocation, flags, flag, devices, error))
            return fail(error, kConfig);
    const Json specification = {{"cdiVersion", kCdiVersion},
                                {"kind", kKind},
                                {"containerEdits", common_edits(invocation, settings, installation, flags)},
                                {"devices", devices}};
    const std::string text = json_text(specification);
    const std::string& output = invocation.arguments.output;
    if (output.empty()) {
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    const int code = write_file(output, text);
    return code == 0 ? 0 : fail(output + ": cannot be written: " + std::strerror(code), kCantWrite);
}

}  // namespace cuslice::cli
