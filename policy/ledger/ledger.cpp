// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/ledger.h"

#include "policy/ledger/context_sizes.h"
#include "policy/ledger/group_terms.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/locked.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/total.h"

namespace cuslice::ledger {

void Ledger::close() {
    const DisablingLockGuard guard(admission_.roster.file.mutex());
    admission_.roster.close();
}

void Ledger::forget() {
    const DisablingLockGuard guard(admission_.roster.file.mutex());
    admission_.roster.forget();
    forget_pid_namespace();
}

uint64_t Ledger::least_context(uint64_t kind) const {
    const DisablingLockGuard guard(admission_.roster.file.mutex());
    return admission_.roster.file.there() ? ledger::least_context(admission_.roster.file.contents().header, kind) : 0;
}

void Ledger::note_context(uint64_t kind, uint64_t bytes) {
    const uint64_t known = least_context(kind);
    if (known != 0 && known <= bytes)
        return;
    const Locked locked(admission_.roster, Deadline(Locked::kBrief));
    if (locked)
        ledger::note_context(admission_.roster.file.contents().header, kind, bytes);
}

bool Ledger::take_back_dead(LedgerError* why) {
    const Locked locked(admission_.roster, Deadline(Locked::kPatience), why, Locked::Removed::will_do);
    return locked && admission_.roster.take_back_dead();
}

bool Ledger::watch(AccountKind kind, const char* name, Watched* watched) {
    const Locked locked(admission_.roster, Deadline(Locked::kPatience), nullptr, Locked::Removed::will_do);
    if (!locked)
        return false;
    admission_.roster.take_back_dead();
    const File& file = admission_.roster.file.contents();
    const Account* account = admission_.roster.find(kind, name);
    if (!account)
        return false;
    const uint64_t limit = account->limit.load(), used = read_whole(account->total).bytes;
    const auto left = [](uint64_t top, uint64_t gone) { return top > gone ? top - gone : 0; };
    if (left(limit, used) < left(watched->limit, watched->used)) {
        watched->limit = limit;
        watched->used = used;
    }
    for (const Member& member : members_of(file)) {
        if (!is_live(member) || &file.accounts[member.account % kAccounts] != account || is_doubled(file, member))
            continue;
        if (watched->count < Watched::kMax)
            watched->pids[watched->count++] = member.pid;
    }
    return true;
}

bool Ledger::look_at_group(const char* name, GroupTerms* terms) {
    const Locked locked(admission_.roster, Deadline(Locked::kPatience), nullptr, Locked::Removed::will_do);
    if (!locked)
        return false;
    admission_.roster.take_back_dead();
    *terms = find_terms(admission_.roster.file.contents(), admission_.roster.find(AccountKind::group, name), name);
    return true;
}

bool Ledger::set_limit(AccountKind kind, const char* name, uint64_t limit) {
    const Locked locked(admission_.roster, Deadline(Locked::kPatience));
    if (!locked)
        return false;
    Account* account = admission_.roster.find(kind, name);
    if (!account)
        return false;
    account->limit.store(limit);
    return true;
}

}  // namespace cuslice::ledger
