#include "policy/ledger/liveness.h"

#include <unistd.h>

#include "policy/ledger/locks.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::ledger {

namespace {

// Whether the owner of a place lives, be it a member's or a ticket's.
template <typename Owner>
bool owner_lives(const Owner& owner, std::uint32_t place, int file) {
    bool unknown = false;
    if (is_locked(file, byte_of_member(place), &unknown)) return true;
    if (owner.lock == LockKind::open_file && !unknown) return false;
    const std::uint64_t space = own_pid_namespace();
    if (!space || owner.pid_namespace != space) return unknown;
    return owner.start_time && start_time_of(owner.pid) == owner.start_time;
}

}  // namespace

bool is_this_process(const Member& member) {
    if (member.pid != getpid()) return false;  // as it mostly is
    // Without /proc it can't be told: the first process of each container has the same pid.
    if (!member.start_time || !member.pid_namespace) return false;
    const ProcessIdentity self = this_process();
    return member.start_time == self.start_time && member.pid_namespace == self.pid_namespace;
}

bool is_doubled(const File& file, const Member& member) {
    if (!is_launchers(member.role)) return false;
    for (std::uint32_t i = 0; i < file.header.members && i < kMembers; i++) {
        const Member& other = file.members[i];
        if (other.state.load() == MemberState::live && !is_launchers(other.role) && other.account == member.account &&
            other.pid == member.pid && other.start_time == member.start_time &&
            other.pid_namespace == member.pid_namespace)
            return true;
    }
    return false;
}

// In another pid namespace a carried one's end can't be seen, and what lives must not be taken back.
bool lives(const Member& member, std::uint32_t number, int file) {
    if (!is_carried(member.role)) return owner_lives(member, number, file);
    if (member.pid_namespace != own_pid_namespace()) return true;
    return member.start_time && start_time_of(member.pid) == member.start_time;
}

bool lives(const Ticket& ticket, std::uint32_t index, int file) {
    return owner_lives(ticket, place_of_ticket(index), file);
}

}  // namespace cuslice::ledger
