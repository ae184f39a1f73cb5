#include "policy/ledger/accounts.h"

#include <string.h>

namespace cuslice::ledger {

Account* find_account(File& file, AccountKind kind, const char* name) {
    for (Account& account : file.accounts)
        if (account.state.load() != AccountState::free && account.kind == kind &&
            strncmp(account.name, name, sizeof account.name) == 0)
            return &account;
    return nullptr;
}

bool has_members(const File& file, std::uint32_t account) {
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++)
        if (file.members[i].state.load() == MemberState::live && file.members[i].account == account) return true;
    return false;
}

Account* new_account(File& file, AccountKind kind) {
    Account *free = nullptr, *left = nullptr;
    unsigned groups = 0;
    for (std::uint32_t i = 0; i < kAccounts; i++) {
        Account& account = file.accounts[i];
        if (account.state.load() == AccountState::free) {
            // The one that ended first: of the others it can still be said what they held (see peaks in holders.h).
            if (!free || account.left < free->left) free = &account;
            continue;
        }
        if (account.kind != AccountKind::group) continue;
        groups++;
        if (account.left && !has_members(file, i) && (!left || account.left < left->left)) left = &account;
    }
    if (!free || (kind == AccountKind::group && groups >= kMaxGroups)) free = left;
    if (free) free->state.store(AccountState::free);
    return free;
}

void set_terms(Account* account, const Terms& terms) {
    const bool known = account->state.load() != AccountState::free;
    if (!known) {
        account->kind = terms.kind;
        account->inner = terms.inner;
        memcpy(account->name, terms.name, sizeof account->name);
        account->total.bytes = 0;  // the stamp stays: it is some stripe's, and noted there when it is replaced
    }
    if (!known || terms.limit != kNoLimitBytes) account->limit.store(terms.limit);
    account->peak.store(0);
    account->left = 0;
    account->reserved.store(terms.inner ? 0 : terms.reserved);
    account->state.store(AccountState::claimed);
}

}  // namespace cuslice::ledger
