// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/committed.h"

#include <string.h>

namespace cuslice::ledger {

namespace {

void add_holder(Committed* committed, unsigned user, const Account& account, const Member& first) {
    const uint64_t used = __atomic_load_n(&account.total.bytes, __ATOMIC_RELAXED);
    committed->used += used;
    committed->promised += promised(account);
    if (committed->count == Committed::kMax) {
        committed->left_out++;
        return;
    }
    Holder& holder = committed->holders[committed->count++];
    holder.user = user;
    holder.pid = first.pid;
    holder.pid_namespace = first.pid_namespace;
    holder.start_time = first.start_time;
    memcpy(holder.command, first.command, sizeof holder.command);
    holder.command[sizeof holder.command - 1] = '\0';
    holder.since = first.since;
    holder.reserved = account.reserved.load();
    holder.used = used;
}

}  // namespace

bool add_account(const Account& account, unsigned user, const Member& first, bool waits, Committed* committed,
                 bool* undecided) {
    if (account.state.load() == AccountState::claimed) {
        if (waits && account.ticket > committed->queue.order()) {
            *undecided = true;
            return false;
        }
        committed->queue.granted(account.ticket);
    }
    committed->queue.drop(user, account.ticket);
    add_holder(committed, user, account, first);
    return true;
}

}  // namespace cuslice::ledger
