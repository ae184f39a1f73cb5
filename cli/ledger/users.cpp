// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/users.h"

#include <pwd.h>

#include <map>

namespace cuslice::cli {

std::string user_name(unsigned user) {
    // A directory server may take long: each is asked for once.
    static std::map<unsigned, std::string> known;
    const auto found = known.find(user);
    if (found != known.end())
        return found->second;
    const passwd* const entry = ::getpwuid(user);
    return known[user] = entry != nullptr ? entry->pw_name : std::to_string(user);
}

std::string told(const ledger::LedgerError& failure) {
    std::string text = failure.text;
    const std::string number = "user " + std::to_string(failure.stranger_user);
    const size_t found = failure.stranger ? text.rfind(number) : text.npos;
    return found == text.npos ? text : text.replace(found, number.size(), "user " + user_name(failure.stranger_user));
}

}  // namespace cuslice::cli
