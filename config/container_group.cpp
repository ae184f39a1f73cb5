// SPDX-License-Identifier: Apache-2.0
#include "config/container_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/resolve.h"

namespace cuslice {
namespace {

using Name = FixedText<64>;

void append_hex(Name& name, uint64_t number) {
    char digits[16];
    size_t first = sizeof digits;
    do {
        digits[--first] = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number != 0);
    name.append(std::string_view(digits + first, sizeof digits - first));
}

// A container's root is a file system of its own (overlay) or a folder of its own; in either case no other container
// has the same device and inode while this one runs. Where it can't be asked, all containers share one account: less
// memory is granted then, never more.
Name container_name() {
    Name name("container");
    struct stat root {};
    if (syscall(SYS_newfstatat, AT_FDCWD, "/", &root, 0) != 0)
        return name;
    append_hex(name.append('-'), root.st_dev);
    append_hex(name.append('-'), root.st_ino);
    return name;
}

}  // namespace

bool shares_container(const Settings& settings) {
    const Entry* group = find(settings, Key::group);
    return group != nullptr && group->value == kContainerGroup;
}

FixedText<64> group_name(const Settings& settings) {
    const Entry* group = find(settings, Key::group);
    if (group == nullptr)
        return {};
    return group->value == kContainerGroup ? container_name() : Name(group->value);
}

}  // namespace cuslice
