// SPDX-License-Identifier: Apache-2.0
// Identity of a process, as far as the rules of the system ask for it: user, groups, cgroups and executable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/text.h"

namespace cuslice::rules {

/// Why something of a process can't be told for sure: it isn't known at all, as without /proc; whoever made the
/// namespace chose the numbers of users and groups; paths begin in the namespace; there are too many to be counted.
enum class Doubt : uint8_t { none, unknown, user_namespace, cgroup_namespace, too_many };

struct Identity {
    static constexpr size_t kMaxGroups = 256;

    /// The real user, by the number that the machine has for it.
    unsigned user = 0;
    Doubt user_doubt = Doubt::unknown;
    /// The primary group and the supplementary ones; in doubt where some may be missing.
    unsigned groups[kMaxGroups] = {};
    size_t group_count = 0;
    Doubt groups_doubt = Doubt::unknown;
    /// Paths, each ended by a newline: of the unified hierarchy, and of older ones.
    FixedText<8192> cgroups;
    Doubt cgroups_doubt = Doubt::unknown;
    /// The path that it had when it was started, also where its file is deleted since. Empty if it isn't known.
    FixedText<4096> executable;
    /// It has another mount namespace or root than this process, and so perhaps other rules.
    bool elsewhere = false;

    std::span<const unsigned> group_list() const { return {groups, group_count}; }
};

/// Why the numbers of users, as this process sees them, may not be the machine's.
Doubt doubt_of_users(const char* root);

/// Reads this process's identity from the kernel. `root` is put before /proc; empty except in tests.
void read_identity(const char* root, Identity& identity);

/// Reads the identity of any process, as that process would see it. False, with the reason, if there is no such
/// process, if it has no executable, or if this process may not look at it.
bool read_identity_of(const char* root, unsigned pid, Identity& identity, Reason& why);

/// The number outside of a namespace, by the text of a uid_map or gid_map, that `inside` has. False if it has none.
/// Of an empty text, as where there is no /proc, the number is the same. Pure.
bool map_outside(std::string_view map, unsigned inside, unsigned& outside);

}  // namespace cuslice::rules
