// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/dead_stats.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"

namespace cuslice::cli {
namespace {

// The kernel grants no read lease on a file that somebody has mapped to write to, in whatever pid namespace. Only a
// file system in memory is believed: elsewhere the writer can be on another node, or in another layer.
bool nobody_writes(int file) {
    struct statfs system {};
    if (::fstatfs(file, &system) != 0 || system.f_type != TMPFS_MAGIC)
        return false;
    ::fcntl(file, F_SETSIG, SIGURG);  // what is sent when somebody wants to write meanwhile: ignored by default
    if (::fcntl(file, F_SETLEASE, F_RDLCK) != 0)
        return false;
    ::fcntl(file, F_SETLEASE, F_UNLCK);
    return true;
}

bool is_dead(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat info {};
    const bool dead = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && nobody_writes(file);
    ::close(file);
    return dead;
}

}  // namespace

void remove_dead_stats(const std::string& folder) {
    stats::remove_dead(folder.c_str());
    const uint64_t here = ledger::read_pid_namespace();
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        stats::Name name;
        const std::string path = entry.path();
        if (!stats::parse_name(entry.path().filename().c_str(), &name) || name.pid_namespace == here)
            continue;
        if (is_dead(path))
            ::unlink(path.c_str());
    }
}

}  // namespace cuslice::cli
