// SPDX-License-Identifier: Apache-2.0
#include "config/system_places.h"

#include <sys/stat.h>

#include "config/rules/identity.h"

namespace cuslice {
namespace {

constexpr unsigned kUnmapped = 65534;  // /proc/sys/kernel/overflowuid

bool belongs_to_root(const FileRights& rights, const SystemPlaces& system) {
    if (rights.owner == 0 || rights.owner == system.owner)
        return true;
    return rights.owner == kUnmapped && rules::doubt_of_users(system.root) != rules::Doubt::none;
}

bool others_write(const FileRights& rights) {
    const bool group_writes = (rights.mode & S_IWGRP) != 0 && rights.group != 0;
    return group_writes || (rights.mode & S_IWOTH) != 0;
}

}  // namespace

bool only_root_can_change(const FileRights& rights, const SystemPlaces& system, std::string_view content, Reason& why) {
    if (!belongs_to_root(rights, system)) {
        why.assign("belongs to another user than root, so nobody can trust its ", content);
        why.append(": chown root it");
        return false;
    }
    if (others_write(rights)) {
        why.assign("writable by others than root, so nobody can trust its ", content, ": chmod go-w it");
        return false;
    }
    return true;
}

}  // namespace cuslice
