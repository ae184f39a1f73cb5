// Who a process is, as far as the rules of the system ask: user, groups, cgroups and executable.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "config/text.h"

namespace cuslice::rules {

struct Identity {
    static constexpr std::size_t kMaxGroups = 256;

    /// The real user, by the number that the machine has for it. Not `sure` in a user namespace, where whoever made it
    /// chose the numbers, and where /proc doesn't say whether it is one.
    unsigned user = 0;
    bool user_sure = false;
    /// The primary group and the supplementary ones; not `sure` where some may be missing.
    unsigned groups[kMaxGroups] = {};
    std::size_t group_count = 0;
    bool groups_sure = false;
    /// Paths, each ended by a newline: of the unified hierarchy, and of older ones. Not `sure` in a cgroup namespace,
    /// whose paths begin in it.
    FixedText<8192> cgroups;
    bool cgroups_sure = false;
    /// Empty if it isn't known.
    FixedText<4096> executable;

    std::span<const unsigned> group_list() const { return {groups, group_count}; }
};

/// What the kernel says of this process. `root` stands before /proc: nothing, but in tests.
void read_identity(const char* root, Identity& identity);

/// The number outside of a namespace, by the text of a uid_map or gid_map, that `inside` has. False if it has none.
/// Of an empty text, as where there is no /proc, the number is the same. Pure.
bool map_outside(std::string_view map, unsigned inside, unsigned& outside);

}  // namespace cuslice::rules
