// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/accounts.h"

#include <string.h>

#include <algorithm>
#include <iterator>

namespace cuslice::ledger {

namespace {

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
    const auto is_it = [&](const Account& account) {
        return !is_free(account) && account.kind == kind && strncmp(account.name, name, sizeof account.name) == 0;
    };
    Account* const found = std::find_if(std::begin(file.accounts), std::end(file.accounts), is_it);
    return found == std::end(file.accounts) ? nullptr : found;
}

const Member* first_member(const File& file, uint32_t account) {
    return find_member(members_of(file), account, [](const Member&) { return true; });
}

bool has_members(const File& file, uint32_t account) { return first_member(file, account) != nullptr; }

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
    if (is_free(*account)) {
        account->kind = terms.kind;
        account->inner = terms.inner;
        memcpy(account->name, terms.name, sizeof account->name);
        account->limit.store(kNoLimitBytes);
        account->total.bytes = 0;  // the stamp stays: it is some stripe's, and noted there when it is replaced
    }
    if (terms.limit != kNoLimitBytes)
        account->limit.store(terms.limit);
    account->peak.store(0);
    account->left = 0;
    account->reserved.store(terms.inner ? 0 : terms.reserved);
    account->state.store(AccountState::claimed);
}

}  // namespace cuslice::ledger
