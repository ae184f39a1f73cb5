// SPDX-License-Identifier: Apache-2.0
// Counts what is still in a ledger, for tests in which everybody has left it.
#pragma once

#include "policy/ledger/layout.h"

namespace cuslice::tests {

struct LeftOver {
    uint64_t bytes = 0, reserved = 0;  // of all accounts
    unsigned members = 0, tickets = 0, stripes = 0;
    unsigned accounts = 0;  // but for groups, of which the limit is kept

    bool nothing() const { return bytes + reserved + members + tickets + stripes + accounts == 0; }
};

/// Nobody may be changing the file.
inline LeftOver left_over(const ledger::File& file) {
    LeftOver left;
    for (const ledger::Member& member : file.members)
        left.members += member.state.load() != ledger::MemberState::free;
    for (const ledger::Ticket& ticket : file.tickets)
        left.tickets += ticket.state.load() != ledger::TicketState::free;
    for (uint32_t i = 0; i < file.header.members * ledger::kStripes; i++)
        left.stripes += file.stripes[i].held.load() != 0;
    for (const ledger::Account& account : file.accounts) {
        left.bytes += account.total.bytes;
        left.reserved += is_free(account) ? 0 : account.reserved.load();  // a free one's words say nothing
        left.accounts +=
            account.kind != ledger::AccountKind::group && account.state.load() != ledger::AccountState::free;
    }
    return left;
}

}  // namespace cuslice::tests
