// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/accounts.h"

#include <string.h>

#include <algorithm>

namespace cuslice::ledger {

namespace {

bool is_free(const Account& account) { return account.state.load() == AccountState::free; }

bool is_live_member(const Member& member, uint32_t account) {
    return member.state.load() == MemberState::live && member.account == account;
}

// The one of two that its members have left first. `before` may be null.
Account* left_first(Account* before, Account& account) {
    return before && before->left <= account.left ? before : &account;
}

// Groups outlive their members for a while, so that their limit is known to the next.
bool is_left_group(const File& file, uint32_t account) {
    return file.accounts[account].left != 0 && !has_members(file, account);
}

}  // namespace

Account* find_account(File& file, AccountKind kind, const char* name) {
    for (Account& account : file.accounts) {
        if (is_free(account) || account.kind != kind)
            continue;
        if (strncmp(account.name, name, sizeof account.name) == 0)
            return &account;
    }
    return nullptr;
}

bool has_members(const File& file, uint32_t account) {
    const uint32_t count = std::min<uint32_t>(file.header.members, kMembers);
    for (uint32_t i = 0; i < count; i++)
        if (is_live_member(file.members[i], account))
            return true;
    return false;
}

Account* new_account(File& file, AccountKind kind) {
    Account* free = nullptr;  // whose members left first: what the others held can still be said (peaks in holders.h)
    Account* left = nullptr;
    unsigned groups = 0;
    for (uint32_t i = 0; i < kAccounts; i++) {
        Account& account = file.accounts[i];
        if (is_free(account)) {
            free = left_first(free, account);
            continue;
        }
        if (account.kind != AccountKind::group)
            continue;
        groups++;
        if (is_left_group(file, i))
            left = left_first(left, account);
    }
    const bool too_many_groups = kind == AccountKind::group && groups >= kMaxGroups;
    Account* const chosen = free && !too_many_groups ? free : left;
    if (chosen)
        chosen->state.store(AccountState::free);
    return chosen;
}

void set_terms(Account* account, const Terms& terms) {
    const bool known = account->state.load() != AccountState::free;
    if (!known) {
        account->kind = terms.kind;
        account->inner = terms.inner;
        memcpy(account->name, terms.name, sizeof account->name);
        account->total.bytes = 0;  // the stamp stays: it is some stripe's, and noted there when it is replaced
    }
    if (!known || terms.limit != kNoLimitBytes)
        account->limit.store(terms.limit);
    account->peak.store(0);
    account->left = 0;
    account->reserved.store(terms.inner ? 0 : terms.reserved);
    account->state.store(AccountState::claimed);
}

}  // namespace cuslice::ledger
