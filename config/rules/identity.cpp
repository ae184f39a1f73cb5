// SPDX-License-Identifier: Apache-2.0
#include "config/rules/identity.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "config/text_file.h"

namespace cuslice::rules {
namespace {

constexpr size_t kMostOfProc = size_t{64} * 1024;
using Link = FixedText<4096>;

// Links and files of one process in /proc. `process` is "self" or its number.
struct Proc {
    const char* root;
    FixedText<16> process;

    Link path(std::string_view name) const {
        Link path(root);
        path.append("/proc/", process, "/", name);
        return path;
    }
};

// Empty where there is none, and where it is longer than a path may be.
Link read_link(const Link& path) {
    char text[4096];
    const long size = ::syscall(SYS_readlinkat, AT_FDCWD, path.c_str(), text, sizeof text);
    if (size <= 0 || static_cast<size_t>(size) >= sizeof text)
        return {};
    return Link(std::string_view(text, static_cast<size_t>(size)));
}

// The kernel adds a word to the path of a file that has lost its name, as where an upgrade has replaced it. A file can
// be called so too: then it is there.
Link executable_of(const Proc& proc) {
    constexpr std::string_view kDeleted = " (deleted)";
    Link path = read_link(proc.path("exe"));
    const std::string_view text = path.view();
    if (text.size() <= kDeleted.size() || slice(text, text.size() - kDeleted.size()) != kDeleted)
        return path;
    Link there(proc.root);
    there.append(text);
    if (::syscall(SYS_faccessat, AT_FDCWD, there.c_str(), F_OK) == 0)
        return path;
    return path.assign(slice(text, 0, text.size() - kDeleted.size()));
}

// The kernel's own numbers of the namespaces that the machine began with (include/linux/proc_ns.h).
Doubt user_namespace(const Proc& proc) {
    const Link own = read_link(proc.path("ns/user"));
    return own.view() == "user:[4026531837]" ? Doubt::none : own.empty() ? Doubt::unknown : Doubt::user_namespace;
}
Doubt cgroup_namespace(const Proc& proc) {
    const Link own = read_link(proc.path("ns/cgroup"));
    return own.view() == "cgroup:[4026531835]" ? Doubt::none : own.empty() ? Doubt::unknown : Doubt::cgroup_namespace;
}
bool same_link(const Proc& one, const Proc& other, std::string_view name) {
    return read_link(one.path(name)).view() == read_link(other.path(name)).view();
}

bool take_number(std::string_view& text, uint64_t& number) {
    while (!text.empty() && !is_digit(text[0]) && text[0] != '\n')
        text = slice(text, 1);
    if (text.empty() || !is_digit(text[0]))
        return false;
    for (number = 0; !text.empty() && is_digit(text[0]) && number < 1ull << 40; text = slice(text, 1))
        number = number * 10 + static_cast<uint64_t>(text[0] - '0');
    return true;
}

unsigned mapped(std::string_view map, unsigned inside) {
    unsigned outside = inside;
    map_outside(map, inside, outside);
    return outside;
}

void read_groups(const Proc& proc, Identity& identity) {
    TextFile map;
    TextFile::read(map, proc.path("gid_map").c_str(), kMostOfProc);
    unsigned own[Identity::kMaxGroups];
    identity.groups_doubt = identity.user_doubt;
    // More than there is room for: EINVAL.
    const long count = ::syscall(SYS_getgroups, static_cast<long>(Identity::kMaxGroups - 1), own);
    if (count < 0)
        identity.groups_doubt = Doubt::too_many;
    identity.groups[identity.group_count++] = mapped(map.view(), static_cast<unsigned>(::syscall(SYS_getgid)));
    for (long i = 0; i < count; ++i)
        identity.groups[identity.group_count++] = mapped(map.view(), own[i]);
}

// `0::/path` and `4:memory:/path`. The unified one first: it is the one that others count by.
void read_cgroups(const Proc& proc, Identity& identity) {
    TextFile file;
    TextFile::read(file, proc.path("cgroup").c_str(), kMostOfProc);
    for (const bool unified : {true, false}) {
        std::string_view text = file.view(), line;
        while (take_line(text, line)) {
            const size_t first = line.find(':');
            const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
            if (second == line.npos || starts_with(line, "0::") != unified)
                continue;
            identity.cgroups.append(slice(line, second + 1), '\n');
        }
    }
    const bool whole = !identity.cgroups.empty() && !identity.cgroups.cut();
    identity.cgroups_doubt = whole ? cgroup_namespace(proc) : Doubt::unknown;
}

// The numbers behind "Uid:" and the like in /proc/PID/status, by this process's own map: the kernel writes them for
// whoever reads.
size_t read_numbers(std::string_view status, std::string_view name, std::string_view map, std::span<unsigned> numbers) {
    std::string_view line;
    size_t count = 0;
    while (take_line(status, line)) {
        if (!starts_with(line, name))
            continue;
        uint64_t number = 0;
        for (; take_number(line, number); ++count)
            if (count < numbers.size())
                numbers[count] = mapped(map, static_cast<unsigned>(number));
        break;
    }
    return count;
}

}  // namespace

bool map_outside(std::string_view map, unsigned inside, unsigned& outside) {
    outside = inside;
    if (map.empty())
        return true;
    std::string_view line;
    while (take_line(map, line)) {
        uint64_t first = 0, there = 0, count = 0;
        if (!take_number(line, first) || !take_number(line, there) || !take_number(line, count))
            continue;
        if (inside < first || inside - first >= count)
            continue;
        outside = static_cast<unsigned>(there + (inside - first));
        return true;
    }
    return false;
}

Doubt doubt_of_users(const char* root) { return user_namespace({root, FixedText<16>("self")}); }

void read_identity(const char* root, Identity& identity) {
    const Proc self{root, FixedText<16>("self")};
    TextFile map;
    TextFile::read(map, self.path("uid_map").c_str(), kMostOfProc);
    identity.user = mapped(map.view(), static_cast<unsigned>(::syscall(SYS_getuid)));
    identity.user_doubt = user_namespace(self);
    read_groups(self, identity);
    read_cgroups(self, identity);
    identity.executable = executable_of(self);
}

bool read_identity_of(const char* root, unsigned pid, Identity& identity, Reason& why) {
    const Proc self{root, FixedText<16>("self")};
    Proc proc{root, {}};
    proc.process.append(pid);
    TextFile status, users, groups;
    if (const int code = status.open(proc.path("status").c_str()); code != 0) {
        if (code == ENOENT)
            why.assign("no such process");
        else
            explain_errno(code, why);
        return false;
    }
    if (!status.read(kMostOfProc, why))
        return false;
    char first;
    if (::syscall(SYS_readlinkat, AT_FDCWD, proc.path("exe").c_str(), &first, 1) < 0) {
        const int code = errno;
        Reason cause;
        explain_errno(code, cause);
        if (code == ENOENT)
            why.assign("it has no executable: it has ended, or is the kernel's own");
        else
            why.assign(proc.path("exe"), " ", cause);
        return false;
    }
    identity.executable = executable_of(proc);
    TextFile::read(users, self.path("uid_map").c_str(), kMostOfProc);
    TextFile::read(groups, self.path("gid_map").c_str(), kMostOfProc);
    read_numbers(status.view(), "Uid:", users.view(), {&identity.user, 1});
    identity.user_doubt = user_namespace(proc);
    read_numbers(status.view(), "Gid:", groups.view(), {identity.groups, 1});
    const size_t count = read_numbers(status.view(), "Groups:", groups.view(),
                                      std::span(identity.groups).last(Identity::kMaxGroups - 1));
    const bool fits = count < Identity::kMaxGroups;
    identity.group_count = 1 + (fits ? count : 0);
    identity.groups_doubt = fits ? identity.user_doubt : Doubt::too_many;
    read_cgroups(proc, identity);
    // The kernel shows paths from where the reader's namespace begins.
    if (!same_link(proc, self, "ns/cgroup")) {
        identity.cgroups.clear();
        identity.cgroups_doubt = Doubt::cgroup_namespace;
    }
    identity.elsewhere = !same_link(proc, self, "ns/mnt") || !same_link(proc, self, "root");
    return true;
}

}  // namespace cuslice::rules
