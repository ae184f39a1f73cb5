// SPDX-License-Identifier: Apache-2.0
// Checks the surroundings of the process: a container, a pid namespace, a systemd session.
#include <unistd.h>

#include <charconv>
#include <sstream>

#include "cli/doctor/checks.h"
#include "cli/doctor/logind.h"
#include "cli/settings/launcher_settings.h"
#include "config/resolve.h"

namespace cuslice::cli::doctor {
namespace {

// From this driver on NVML lists processes as the caller's pid namespace has them.
constexpr unsigned kListsInCallersNamespace = 545;

bool in_container(const Setup& setup) {
    for (const char* const mark : {"/.dockerenv", "/run/.containerenv"})
        if (::access(setup.machine_file(mark).c_str(), F_OK) == 0)
            return true;
    return setup.environment.get("container").has_value();  // podman, systemd-nspawn, LXC
}

struct Mount {
    std::string point, source;
};

// The mount on which `path` lies, from lines of proc(5)'s mountinfo: "36 35 98:0 /root /point options - type source
// more".
Mount mount_of(const std::string& mountinfo, const std::string& path) {
    Mount found;
    std::istringstream lines(mountinfo);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        Mount one;
        std::string word;
        for (int i = 0; i < 5 && words >> word; ++i)
            one.point = word;
        while (words >> word && word != "-") {
        }
        words >> word >> one.source;
        const std::string below = one.point == "/" ? "/" : one.point + "/";
        if ((path + "/").starts_with(below) && one.point.size() >= found.point.size())
            found = one;
    }
    return found;
}

// Docker and its like give a container a /dev/shm of its own, with the source "shm"; what lies on the container's root
// is its own too.
void check_shared(const Setup& setup, const std::string& folder, Findings& findings) {
    const Mount mount = mount_of(text_of(setup.machine_file("/proc/self/mountinfo")), folder);
    const bool own = mount.point == "/" || (mount.point == "/dev/shm" && mount.source == "shm");
    if (!own)
        return findings.ok("container", "in a container, and its mounts don't show that " + folder + " is its own");
    findings.warning("container-folder",
                     "this container has " + folder +
                         " to itself, so programs outside and in other containers are not seen, and reserve the same "
                         "memory again",
                     "Mount the host's: docker run -v " + folder + ":" + folder);
}

void check_namespace(const Setup& setup, Findings& findings) {
    const std::string name = pid_namespace(setup);
    const std::string version = kernel_driver_version(setup);
    unsigned branch = 0;
    std::from_chars(version.data(), version.data() + version.size(), branch);
    if (name.empty() || name == kHostsNamespace || branch == 0 || branch >= kListsInCallersNamespace)
        return;
    findings.warning(
        "pid-namespace",
        "driver " + version +
            " lists processes as the host counts them, and this one is in a pid namespace of its own: what "
            "the driver takes is measured less exactly",
        "Start the container with the host's pids (docker run --pid=host), or install driver 545 or newer");
}

}  // namespace

void check_container(Setup& setup, Findings& findings) {
    if (!setup.configured)
        return;
    const Entry* const alone = find(setup.settings, Key::per_process);
    const bool shares = alone == nullptr || alone->number == 0;
    const std::string folder = sharing_folder(setup.settings, setup.environment);
    if (shares && in_container(setup))
        check_shared(setup, folder, findings);
    if (find(setup.settings, Key::fake) == nullptr)
        check_namespace(setup, findings);
    if (!shares || !(folder + "/").starts_with("/dev/shm/") || !removes_ipc(setup))
        return;
    findings.warning("remove-ipc",
                     "systemd-logind removes this user's files from " + folder +
                         " at logout (RemoveIPC=yes), also while jobs go on under nohup, cron or Slurm",
                     "Set RemoveIPC=no in /etc/systemd/logind.conf, let the user linger (loginctl enable-linger), or "
                     "name a folder outside /dev/shm with --dir");
}

}  // namespace cuslice::cli::doctor
