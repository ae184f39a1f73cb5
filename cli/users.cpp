#include "cli/users.h"

#include <pwd.h>

namespace cuslice::cli {

std::string user_name(unsigned user) {
    const passwd* const entry = ::getpwuid(user);
    return entry != nullptr ? entry->pw_name : std::to_string(user);
}

}  // namespace cuslice::cli
