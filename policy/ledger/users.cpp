#include "policy/ledger/users.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>

namespace cuslice::ledger {

namespace {

// What the kernel shows for a user who has no number in this namespace (/proc/sys/kernel/overflowuid).
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
    if (file < 0) return map;
    const ssize_t count = read(file, map.text, sizeof map.text - 1);
    close(file);
    map.text[count > 0 ? count : 0] = '\0';
    return map;
}

}  // namespace

unsigned outside_of(const char* map, unsigned inside, bool* mapped) {
    *mapped = !*map;
    for (const char* at = map; *at;) {
        unsigned long long numbers[3];
        char* end = nullptr;
        for (unsigned long long& number : numbers) number = strtoull(at, &end, 10), at = end;
        if (inside >= numbers[0] && inside - numbers[0] < numbers[2]) {
            *mapped = true;
            return static_cast<unsigned>(numbers[1] + (inside - numbers[0]));
        }
        while (*at && *at != '\n') at++;
        if (*at) at++;
    }
    return inside;
}

unsigned this_user() {
    bool mapped = false;
    return outside_of(own_map().text, geteuid(), &mapped);
}

bool belongs_to(unsigned owner, unsigned user) {
    const Map map = own_map();
    bool mapped = false, everybody = false;
    if (outside_of(map.text, owner, &mapped) == user && mapped) return true;
    outside_of(map.text, kLargest, &everybody);
    return owner == kUnmapped && !everybody;
}

}  // namespace cuslice::ledger
