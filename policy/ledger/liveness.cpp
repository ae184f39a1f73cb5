// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/liveness.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "policy/ledger/presence.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::ledger {

namespace {

template <typename Owner>
bool owner_lives(const Owner& owner, const UserFolder& where, Trusted trusted) {
    const Life life = life_of(where, owner.presence.load());
    if (life == Life::lives)
        return true;
    if (life == Life::ended && owner.lock == LockKind::open_file)
        return false;
    const uint64_t space = own_pid_namespace();
    if (space && owner.pid_namespace == space)
        return is_same_start(start_time_of(owner.pid), owner.start_time);
    return life == Life::unknown || (life == Life::missing && trusted == Trusted::own);
}

}  // namespace

bool is_same_process(const Member& a, const Member& b) {
    if (a.pid != b.pid || a.pid_namespace != b.pid_namespace)
        return false;
    return may_be_same_start(a.start_time, b.start_time);
}

bool is_this_process(const Member& member) {
    if (member.pid != getpid())
        return false;  // as it mostly is
    // Without /proc it can't be told: the first process of each container has the same pid.
    if (!member.start_time || !member.pid_namespace)
        return false;
    const ProcessIdentity self = this_process();
    return is_same_start(member.start_time, self.start_time) && member.pid_namespace == self.pid_namespace;
}

bool is_doubled(const File& file, const Member& member) {
    if (!is_launchers(member.role))
        return false;
    const uint32_t count = std::min<uint32_t>(file.header.members, kMembers);
    for (uint32_t i = 0; i < count; i++) {
        const Member& other = file.members[i];
        if (other.state.load() != MemberState::live || is_launchers(other.role))
            continue;
        if (other.account == member.account && is_same_process(other, member))
            return true;
    }
    return false;
}

bool lives(const Member& member, const UserFolder& where, Trusted trusted) {
    return owner_lives(member, where, trusted);
}

bool lives(const Ticket& ticket, const UserFolder& where) { return owner_lives(ticket, where, Trusted::others); }

}  // namespace cuslice::ledger
