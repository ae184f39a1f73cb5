// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/logind.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "cli/ledger/users.h"
#include "config/text.h"

namespace cuslice::cli::doctor {
namespace {

// SYSTEM_UID_MAX of systemd, as distributions build it.
constexpr unsigned kLastSystemUser = 999;

// Highest priority first, as logind.conf(5) has them.
constexpr const char* kFolders[] = {"/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"};

std::string trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(" \t\r");
    return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

bool says_no(const std::string& value) {
    for (const std::string_view no : {"no", "n", "false", "f", "0", "off"})
        if (equal_ignoring_case(value, no))
            return true;
    return false;
}

// True if RemoveIPC= defaults to yes, as in systemd itself. Red Hat and its derivatives build systemd with no.
bool default_of(const Setup& setup) {
    std::istringstream lines(text_of(setup.machine_file("/etc/os-release")));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("ID") && (line.find("rhel") != line.npos || line.find("centos") != line.npos))
            return false;
    return true;
}

// The last RemoveIPC= of [Login] counts, whichever file it is in; an empty one is the default again.
void read(const std::string& text, bool by_default, bool& removes) {
    std::istringstream lines(text);
    bool login = false;
    for (std::string line; std::getline(lines, line);) {
        line = trimmed(line);
        if (line.starts_with("["))
            login = line == "[Login]";
        const size_t equals = line.find('=');
        if (!login || equals == line.npos || trimmed(line.substr(0, equals)) != "RemoveIPC")
            continue;
        const std::string value = trimmed(line.substr(equals + 1));
        removes = value.empty() ? by_default : !says_no(value);
    }
}

// Drop-in files in the order of their names. Among files of one name, the folder of the highest priority wins.
std::map<std::string, std::string> drop_ins(const Setup& setup) {
    std::map<std::string, std::string> files;
    for (const char* const folder : kFolders) {
        std::error_code none;
        const std::string path = setup.machine_file(std::string(folder) + "/logind.conf.d");
        for (const auto& entry : std::filesystem::directory_iterator(path, none))
            if (entry.path().extension() == ".conf")
                files.emplace(entry.path().filename(), entry.path());
    }
    return files;
}

}  // namespace

bool removes_ipc(const Setup& setup) {
    const unsigned user = ::geteuid();
    const auto there = [&](const std::string& path) { return ::access(setup.machine_file(path).c_str(), F_OK) == 0; };
    // sd_booted(3).
    if (user <= kLastSystemUser || !there("/run/systemd/system"))
        return false;
    if (there("/var/lib/systemd/linger/" + user_name(user)))
        return false;
    const bool by_default = default_of(setup);
    bool removes = by_default;
    for (const char* const folder : kFolders) {
        const std::string file = std::string(folder) + "/logind.conf";
        if (!there(file))
            continue;
        read(text_of(setup.machine_file(file)), by_default, removes);
        break;
    }
    for (const auto& [name, path] : drop_ins(setup))
        read(text_of(path), by_default, removes);
    return removes;
}

}  // namespace cuslice::cli::doctor
