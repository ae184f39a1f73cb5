// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>

#include "policy/ledger/total.h"

// A file's accounts. With the header's lock, or before the file has a name.
namespace cuslice::ledger {

inline constexpr uint64_t kNoLimitBytes = kNoLimit;

// Living groups leave the rest of a file's accounts to jobs.
inline constexpr uint32_t kMaxGroups = kAccounts / 4 * 3;

// Values that an account is made with.
struct Terms {
    AccountKind kind = AccountKind::job;
    bool inner = false;
    char name[sizeof Account::name] = {};
    uint64_t limit = kNoLimitBytes, reserved = 0;  // bytes
};

// Null: there is none of that name.
Account* find_account(File& file, AccountKind kind, const char* name);
// The first of an account's members that fits; null: none does.
template <typename Fits>
const Member* find_member(std::span<const Member> members, uint32_t account, const Fits& fits) {
    for (const Member& member : members)
        if (is_live_in(member, account) && fits(member))
            return &member;
    return nullptr;
}
const Member* first_member(const File& file, uint32_t account);
bool has_members(const File& file, uint32_t account);
// One that is free, or is made so: groups that nobody is in any more make room, the one that was left first before the
// others; and living groups leave some to jobs. Null: there is none.
Account* new_account(File& file, AccountKind kind);
// For an account's first member.
void set_terms(Account* account, const Terms& terms);

// Bytes that an account keeps others from having.
inline uint64_t promised(const Account& account) {
    return std::max(account.reserved.load(), __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED));
}

}  // namespace cuslice::ledger
