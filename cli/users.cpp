#include "cli/users.h"

#include <pwd.h>

#include <map>

namespace cuslice::cli {

std::string user_name(unsigned user) {
    // A directory server may take long: each is asked for once.
    static std::map<unsigned, std::string> known;
    const auto found = known.find(user);
    if (found != known.end()) return found->second;
    const passwd* const entry = ::getpwuid(user);
    return known[user] = entry != nullptr ? entry->pw_name : std::to_string(user);
}

}  // namespace cuslice::cli
