// SPDX-License-Identifier: Apache-2.0
// A group as a process finds it that joins it, and the line that says which limit holds for that process from then on.
#pragma once
#include "config/text.h"
#include "policy/ledger/accounts.h"

namespace cuslice::ledger {

/// A group on one GPU, before the process is in it. Sizes are in bytes.
struct GroupTerms {
    bool known = false;              // false: this user has no such group there
    bool lives = false;              // it has members
    uint64_t limit = kNoLimitBytes;  // what holds without the process
    uint64_t used = 0;
    char similar[sizeof Account::name] = {};  // where it isn't known: a group whose name differs in one letter
};

/// A group of `file` whose name differs from `name` in one letter: one more, one less, another one, or two exchanged.
/// Null: there is none. Under the file's lock.
const Account* similar_group(const File& file, const char* name);

/// `account` may be null: there is none of that name. Under the file's lock.
GroupTerms find_terms(const File& file, const Account* account, const char* name);

/// A limit that somebody brings to an account which has none. Under the file's lock.
void bring_limit(Account* account, uint64_t limit);

/// "group lab: on GPU 0 this program shares the group's limit of 8.0 GiB, of which 2.0 GiB are in use". `place`: "GPU
/// 0", or empty for all GPUs; `wanted`: the limit that the process brings, in bytes. Empty where everything is as the
/// process says itself.
FixedText<640> describe_group(std::string_view name, std::string_view place, const GroupTerms& terms, uint64_t wanted);

}  // namespace cuslice::ledger
