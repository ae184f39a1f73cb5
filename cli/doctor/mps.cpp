// SPDX-License-Identifier: Apache-2.0
// MPS, NVIDIA's server through which several processes use a GPU. A program connects to it, or goes on without it and
// says nothing.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "cli/doctor/checks.h"
#include "cli/ledger/users.h"
#include "config/resolve.h"
#include "config/visible.h"

namespace cuslice::cli::doctor {
namespace {

constexpr const char* kPipes = "CUDA_MPS_PIPE_DIRECTORY";
constexpr const char* kDefaultFolder = "/tmp/nvidia-mps";
constexpr std::string_view kLimit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

struct Daemon {
    std::string folder;
    bool there = false;  // it has made its pipe; perhaps it has ended since
    unsigned user = 0;
    int pid = 0;  // 0: not known
};

// Anybody may have made the file: only a regular one is read, which can't keep us waiting.
int pid_in(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return 0;
    struct stat info {};
    char text[32];
    const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    const ssize_t length = regular ? ::read(file, text, sizeof text) : 0;
    ::close(file);
    int pid = 0;
    if (length > 0)
        std::from_chars(text, text + length, pid);
    return pid > 0 ? pid : 0;
}

Daemon daemon_in(const std::string& folder) {
    Daemon daemon{folder};
    struct stat info {};
    daemon.there = ::lstat((folder + "/control").c_str(), &info) == 0;
    daemon.user = info.st_uid;
    if (daemon.there)
        daemon.pid = pid_in(folder + "/nvidia-cuda-mps-control.pid");
    return daemon;
}

// Another pid namespace would have another process of this number, or none.
bool has_ended(const Daemon& daemon, const Setup& setup) {
    return daemon.pid != 0 && pid_namespace(setup) == kHostsNamespace && ::kill(daemon.pid, 0) != 0 && errno == ESRCH;
}

void check_missing(const Setup& setup, const std::string& named, Findings& findings) {
    const bool elsewhere = daemon_in(setup.machine_file(kDefaultFolder)).there;
    std::string seen = std::string(kPipes) + "=" + named +
                       ": no control daemon of MPS is there, so a program goes on without MPS and its limits, and "
                       "doesn't say so";
    if (elsewhere)
        seen += std::string("; there is one in ") + kDefaultFolder;
    findings.warning("mps-pipe", seen, std::string("Name the daemon's folder in ") + kPipes + ", or unset it");
}

// The first number in the variable that is no GPU of the program's; -1 if there is none.
int unseen_number(const Setup& setup) {
    for (const Entry& entry : setup.settings.entries()) {
        const bool counted = entry.selector.kind == GpuSelector::Kind::index;
        if (entry.origin != kLimit || !counted)
            continue;
        if (static_cast<size_t>(entry.selector.index) >= setup.gpus_seen)
            return entry.selector.index;
    }
    return -1;
}

void check_numbers(const Setup& setup, const Daemon& daemon, Findings& findings) {
    if (!setup.driver_answers)
        return;
    const auto visible = setup.environment.get(kCudaVisible);
    if (visible && counts_gpus(*visible) && setup.gpus_there > 1)
        findings.warning("mps-visible",
                         std::string(kCudaVisible) + "=" + *visible +
                             " counts the GPUs that MPS's server shows, which are others if the daemon in " +
                             daemon.folder + " was started with that variable",
                         "Name GPUs by their UUIDs, as cuslice devices shows them");
    if (const int number = unseen_number(setup); number >= 0)
        findings.warning("mps-limit",
                         std::string(kLimit) + " names GPU " + std::to_string(number) +
                             ", which a program doesn't see: MPS may then drop every limit of the variable; cuslice "
                             "keeps those of the other GPUs",
                         "Name only GPUs that the program sees");
}

}  // namespace

void check_mps(Setup& setup, Findings& findings) {
    if (!setup.configured || find(setup.settings, Key::fake) != nullptr)
        return;
    const std::string named = setup.environment.get(kPipes).value_or("");
    const Daemon daemon = daemon_in(named.empty() ? setup.machine_file(kDefaultFolder) : named);
    if (!daemon.there) {
        if (!named.empty())
            check_missing(setup, named, findings);
        return;
    }
    const size_t before = findings.all().size();
    if (has_ended(daemon, setup))
        return findings.warning("mps-daemon",
                                daemon.folder + " has the pipes of a control daemon of MPS that has ended (pid " +
                                    std::to_string(daemon.pid) +
                                    "), so a program goes on without MPS and its limits, and doesn't say so",
                                "Start the daemon again (nvidia-cuda-mps-control -d), or remove the folder");
    if (daemon.user != 0 && daemon.user != ::geteuid())
        findings.warning("mps-user",
                         daemon.folder + " has a control daemon of MPS that is neither root's nor this user's but " +
                             user_name(daemon.user) + "'s: programs connect to it all the same",
                         std::string("Set ") + kPipes + " to the folder of a daemon of your own");
    check_numbers(setup, daemon, findings);
    if (!findings.any_since(before))
        findings.ok("mps", "programs connect to the daemon of MPS in " + daemon.folder);
}

}  // namespace cuslice::cli::doctor
