// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/liveness.h"

#include <unistd.h>

#include "policy/ledger/accounts.h"

namespace cuslice::ledger {

bool lives(Life presence, LockKind lock, const ProcessIdentity& process, Trusted trusted) {
    if (presence == Life::lives)
        return true;
    if (presence == Life::ended && lock == LockKind::open_file)
        return false;
    if (is_own_pid_namespace(process.pid_namespace))
        return is_running(process);
    return presence == Life::unknown || (presence == Life::missing && trusted == Trusted::own);
}

// Without /proc it can't be told: the first process of each container has the same pid.
bool is_this_process(const Member& member) { return member.pid == getpid() && is_running(process_of(member)); }

bool is_doubled(const File& file, const Member& member) {
    if (!is_launchers(member.role))
        return false;
    const auto is_programs = [&](const Member& other) {
        return !is_launchers(other.role) && is_same_process(other, member);
    };
    return find_member(members_of(file), member.account, is_programs) != nullptr;
}

bool lives(const Member& member, const UserFolder& where, Trusted trusted) {
    const Life presence = life_of(where, member.presence.load());
    return lives(presence, member.lock, process_of(member), trusted);
}

bool lives(const Ticket& ticket, const UserFolder& where) {
    const Life presence = life_of(where, ticket.presence.load());
    return lives(presence, ticket.lock, process_of(ticket), Trusted::others);
}

}  // namespace cuslice::ledger
