#include "config/rules/identity.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/text_file.h"

namespace cuslice::rules {
namespace {

constexpr std::size_t kMostOfProc = std::size_t{64} * 1024;
using Link = FixedText<4096>;

Link proc(const char* root, std::string_view name) {
    Link path(root);
    path.append("/proc/self/").append(name);
    return path;
}

// Empty where there is none, and where it is longer than a path may be.
Link read_link(const Link& path) {
    char text[4096];
    const long size = ::syscall(SYS_readlinkat, AT_FDCWD, path.c_str(), text, sizeof text);
    if (size <= 0 || static_cast<std::size_t>(size) >= sizeof text) return {};
    return Link(std::string_view(text, static_cast<std::size_t>(size)));
}

// The kernel's own numbers of the namespaces that the machine began with (include/linux/proc_ns.h).
bool in_first_user_namespace(const char* root) {
    return read_link(proc(root, "ns/user")).view() == "user:[4026531837]";
}
bool in_first_cgroup_namespace(const char* root) {
    const Link own = read_link(proc(root, "ns/cgroup"));
    return own.view() == "cgroup:[4026531835]";
}

bool take_number(std::string_view& text, std::uint64_t& number) {
    while (!text.empty() && !is_digit(text[0]) && text[0] != '\n') text = slice(text, 1);
    if (text.empty() || !is_digit(text[0])) return false;
    for (number = 0; !text.empty() && is_digit(text[0]) && number < 1ull << 40; text = slice(text, 1))
        number = number * 10 + static_cast<std::uint64_t>(text[0] - '0');
    return true;
}

unsigned mapped(std::string_view map, unsigned inside) {
    unsigned outside = inside;
    map_outside(map, inside, outside);
    return outside;
}

void read_groups(const char* root, Identity& identity) {
    TextFile map;
    TextFile::read(map, proc(root, "gid_map").c_str(), kMostOfProc);
    unsigned own[Identity::kMaxGroups];
    identity.groups_sure = identity.user_sure;
    // More than there is room for: EINVAL.
    const long count = ::syscall(SYS_getgroups, static_cast<long>(Identity::kMaxGroups - 1), own);
    if (count < 0) identity.groups_sure = false;
    identity.groups[identity.group_count++] = mapped(map.view(), static_cast<unsigned>(::syscall(SYS_getgid)));
    for (long i = 0; i < count; ++i) identity.groups[identity.group_count++] = mapped(map.view(), own[i]);
}

// `0::/path` and `4:memory:/path`. The unified one first: it is the one that others count by.
void read_cgroups(const char* root, Identity& identity) {
    TextFile file;
    TextFile::read(file, proc(root, "cgroup").c_str(), kMostOfProc);
    for (const bool unified : {true, false}) {
        std::string_view text = file.view(), line;
        while (take_line(text, line)) {
            const std::size_t first = line.find(':');
            const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
            if (second == line.npos || starts_with(line, "0::") != unified) continue;
            identity.cgroups.append(slice(line, second + 1)).append('\n');
        }
    }
    const bool whole = !identity.cgroups.empty() && !identity.cgroups.cut();
    identity.cgroups_sure = whole && in_first_cgroup_namespace(root);
}

}  // namespace

bool map_outside(std::string_view map, unsigned inside, unsigned& outside) {
    outside = inside;
    if (map.empty()) return true;
    std::string_view line;
    while (take_line(map, line)) {
        std::uint64_t first = 0, there = 0, count = 0;
        if (!take_number(line, first) || !take_number(line, there) || !take_number(line, count)) continue;
        if (inside < first || inside - first >= count) continue;
        outside = static_cast<unsigned>(there + (inside - first));
        return true;
    }
    return false;
}

void read_identity(const char* root, Identity& identity) {
    TextFile map;
    TextFile::read(map, proc(root, "uid_map").c_str(), kMostOfProc);
    identity.user = mapped(map.view(), static_cast<unsigned>(::syscall(SYS_getuid)));
    identity.user_sure = in_first_user_namespace(root);
    read_groups(root, identity);
    read_cgroups(root, identity);
    identity.executable = read_link(proc(root, "exe"));
}

}  // namespace cuslice::rules
