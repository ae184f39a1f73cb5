// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/users.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/directory_entry.h"
#include "config/number.h"
#include "policy/ledger/folder.h"

namespace cuslice::ledger {

namespace {

// Number that the kernel shows for a user without one in this namespace (/proc/sys/kernel/overflowuid).
constexpr unsigned kUnmapped = 65534;
// Has a number in the first user namespace alone, where everybody has.
constexpr unsigned kLargest = 0xfffffffe;

struct Map {
    char text[2048] = {};
};

// Empty where /proc doesn't say: the numbers are the host's then.
Map own_map() {
    Map map;
    const int file = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return map;
    const ssize_t count = read(file, map.text, sizeof map.text - 1);
    close(file);
    map.text[count > 0 ? count : 0] = '\0';
    return map;
}

// Finds a file's owner, as this process sees it; false if it is not there, or no regular file where it has to be one.
bool owner_of(int folder, const char* name, bool regular, unsigned* owner) {
    struct stat info {};
    if (!stat_name(folder, name, &info))
        return false;
    *owner = info.st_uid;
    return !regular || S_ISREG(info.st_mode);
}

// Another number than this one by which the folder has a ledger of this user's; the number itself if there is none.
unsigned named_in(const char* folder, unsigned number) {
    const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (directory < 0)
        return number;
    unsigned found = number;
    alignas(DirectoryEntry) char entries[4096];
    for_each_entry(directory, entries, [&](const DirectoryEntry& entry) {
        unsigned user = 0, owner = 0;
        char uuid[64];
        const bool other = parse_ledger_name(entry.name, &user, uuid) && user != number;
        // The lowest, whatever order they are in.
        const bool lower = other && (found == number || user < found);
        if (lower && owner_of(directory, entry.name, true, &owner) && owner == geteuid())
            found = user;
        return true;
    });
    close(directory);
    return found;
}

// The host's root owns its devices, also in a container, where nobody but root can make any.
bool is_hosts_root() {
    unsigned owner = 0;
    return !owner_of(AT_FDCWD, "/dev/null", false, &owner) || owner == geteuid();
}

}  // namespace

unsigned outside_of(const char* map, unsigned inside, bool* mapped) {
    *mapped = !*map;
    for (const char* at = map; *at;) {
        uint64_t numbers[3];
        for (uint64_t& number : numbers)
            number = read_number(at, &at);
        if (inside >= numbers[0] && inside - numbers[0] < numbers[2]) {
            *mapped = true;
            return static_cast<unsigned>(numbers[1] + (inside - numbers[0]));
        }
        at += strcspn(at, "\n");
        at += strspn(at, "\n");
    }
    return inside;
}

unsigned this_user(const char* folder) {
    const Map map = own_map();
    bool mapped = false, everybody = false;
    const unsigned number = outside_of(map.text, geteuid(), &mapped);
    outside_of(map.text, kLargest, &everybody);
    if (everybody && *map.text)
        return number;
    const unsigned named = named_in(folder, number);
    if (named != number)
        return named;
    // A namespace within one that an ordinary user made, as bwrap's: it mostly gives back the number that was outside.
    return number == 0 && !is_hosts_root() ? geteuid() : number;
}

bool belongs_to(unsigned owner, unsigned user) {
    const Map map = own_map();
    bool mapped = false, everybody = false;
    if (outside_of(map.text, owner, &mapped) == user && mapped)
        return true;
    outside_of(map.text, kLargest, &everybody);
    // A file that this user owns was made by nobody else, whatever the host calls this user.
    return !everybody && (owner == kUnmapped || owner == geteuid());
}

}  // namespace cuslice::ledger
