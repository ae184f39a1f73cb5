// SPDX-License-Identifier: Apache-2.0
#include "tests/allowed.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/skip.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kStranger = 60001;
constexpr int kNewTime = 0x80;  // CLONE_NEWTIME, which older headers don't know

bool works_in_child(const std::function<bool()>& attempt) {
    const pid_t child = fork();
    if (child == 0)
        _exit(attempt() ? 0 : 1);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Skips the case unless `allowed`.
bool or_skip(bool allowed, const std::string& why) {
    if (!allowed)
        skip(why);
    return allowed;
}

bool become(unsigned user) {
    return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
}

/// Without it a mount would be seen by the machine, or by whoever made this container.
bool keep_mounts_to_oneself() { return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0; }

// A mount namespace that comes with a user namespace is a slave already; and one without has no rights to mount.
bool try_mounts() { return keep_mounts_to_oneself() && mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) == 0; }

// The process that unshares is not in its own pid namespace, its children are.
bool try_proc() {
    return works_in_child([] { return mount("proc", "/proc", "proc", 0, nullptr) == 0; });
}

bool try_unshare(int flags, unsigned as_user) {
    if (as_user != 0 && !become(as_user))
        return false;
    if (!enter_namespaces(flags))
        return false;
    if ((flags & CLONE_NEWPID) != 0 && !works_in_child([] { return getpid() == 1; }))
        return false;
    if ((flags & CLONE_NEWNS) == 0)
        return true;
    return try_mounts() && ((flags & CLONE_NEWPID) == 0 || try_proc());
}

bool try_filter() {
    sock_filter all_allowed[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{1, all_allowed};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

std::string names_of(int flags) {
    const std::pair<int, const char*> kinds[] = {
        {CLONE_NEWUSER, "user"}, {CLONE_NEWPID, "pid"}, {CLONE_NEWNS, "mount"}, {kNewTime, "time"}};
    std::string names;
    for (const auto& [flag, name] : kinds)
        if ((flags & flag) != 0)
            names += (names.empty() ? "" : " and ") + std::string(name);
    return names;
}

bool others_may_enter(const fs::path& folder) {
    struct stat status {};
    return stat(folder.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) != 0;
}

/// Folders that other users must reach: the sources, and the build that contains this program. Resolved before this
/// process enters another mount namespace: in a chroot, /proc has another path for the program.
const std::vector<fs::path>& places() {
    static const std::vector<fs::path> both = [] {
        std::error_code unknown;
        const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
        return std::vector<fs::path>{CUSLICE_TEST_SOURCE_ROOT, program.parent_path()};
    }();
    return both;
}

/// The outermost folder on the way to `place` that others can't enter; empty: there is none.
fs::path closed_on_way_to(const fs::path& place) {
    fs::path so_far;
    for (const fs::path& name : place) {
        so_far /= name;
        if (!others_may_enter(so_far))
            return so_far;
    }
    return {};
}

bool bind(const fs::path& from, const fs::path& to) {
    return mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

/// A file or folder of an open folder's, at its name in the folder that takes the place of that one.
bool show_again(const fs::path& entry, const fs::path& as) {
    const fs::file_status status = fs::symlink_status(entry);
    std::error_code failed;
    if (fs::is_symlink(status)) {
        fs::copy_symlink(entry, as, failed);
        return !failed;
    }
    if (fs::is_directory(status))
        fs::create_directory(as, failed);
    else
        std::ofstream{as};
    return !failed && bind(entry, as);
}

/// Puts an open folder with the same content in the place of one that is closed.
bool open_here(const fs::path& folder) {
    const int inside = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (inside < 0)
        return false;
    const fs::path closed = "/proc/self/fd/" + std::to_string(inside);
    bool all = mount("tmpfs", folder.c_str(), "tmpfs", 0, "mode=755") == 0;
    std::vector<fs::path> names;
    for (const auto& entry : fs::directory_iterator(closed))
        names.push_back(entry.path().filename());
    for (const fs::path& name : names)
        all = all && show_again(closed / name, folder / name);
    close(inside);
    return all;
}

bool open_all() {
    bool all = true;
    for (const fs::path& place : places())
        for (fs::path closed; all && !(closed = closed_on_way_to(place)).empty();)
            all = open_here(closed);
    return all;
}

bool are_closed() {
    for (const fs::path& place : places())
        if (!closed_on_way_to(place).empty())
            return true;
    return false;
}

}  // namespace

bool can_be_other_users() {
    static const bool can = works_in_child([] { return become(kStranger); });
    return or_skip(can, "only root can be several users");
}

bool can_unshare(int flags, unsigned user) {
    static std::map<std::pair<int, unsigned>, bool> known;
    const auto [found, is_new] = known.try_emplace({flags, user}, false);
    if (is_new)
        found->second = works_in_child([&] { return try_unshare(flags, user); });
    return or_skip(found->second, "no " + names_of(flags) + " namespace can be made here");
}

// A process that has become another user doesn't own its files in /proc without being dumpable.
bool enter_namespaces(int flags) {
    const unsigned user = geteuid(), group = getegid();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (unshare(flags) != 0)
        return false;
    if ((flags & CLONE_NEWUSER) == 0)
        return true;
    std::ofstream("/proc/self/setgroups") << "deny" << std::flush;
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1" << std::flush;
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1" << std::flush;
    return geteuid() == 0;
}

bool can_trace() {
    static const bool can = works_in_child([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0; });
    return or_skip(can, "no process can be traced here");
}

bool can_filter_calls() {
    static const bool can = works_in_child(try_filter);
    return or_skip(can, "no seccomp filter can be set here");
}

bool can_let_others_in() {
    static const bool open = [] {
        if (!are_closed())
            return true;
        // Tried in a child first: a process that has moved halfway would see other folders than it should.
        const auto move = [] { return unshare(CLONE_NEWNS) == 0 && keep_mounts_to_oneself() && open_all(); };
        return works_in_child(move) && move();
    }();
    return or_skip(open, "other users can't enter the folders of the sources and of the build");
}

}  // namespace cuslice::tests
