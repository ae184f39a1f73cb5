// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/ledger_files.h"

#include <sys/stat.h>

#include <filesystem>

#include "policy/ledger/users.h"

namespace cuslice::cli {

LedgerFiles::LedgerFiles(const std::string& folder) : folder_(folder) {
    if (!handle_.open(folder_.c_str()))
        return;
    const unsigned self = ledger::this_user(folder_.c_str());
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
        unsigned user = 0, number = 0;
        char uuid[64];
        struct stat info {};
        if (!ledger::parse_ledger_name(entry.path().filename().c_str(), &user, uuid, &number))
            continue;
        if (::lstat(entry.path().c_str(), &info) != 0 || !ledger::belongs_to(info.st_uid, user))
            continue;
        const ledger::UserFolder where{handle_.descriptor(), user, info.st_uid, folder_.c_str()};
        if (ledger::has_name(where, uuid, number, number))
            continue;
        all_.push_back({entry.path().string(), uuid, user == self, where});
    }
}

}  // namespace cuslice::cli
