// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/own_descriptors.h"
#include "policy/lease/layout.h"
#include "policy/ledger/folder.h"

// The file of a user's leases, in the ledgers' folder: opened, and made where there is none.
namespace cuslice::lease {

using ledger::LedgerError;

/// Stands in the number of a member's presence where a ledger's has its GPU's mark.
inline constexpr char kPresenceMark[] = "lease";

/// "/dev/shm/cuslice/1000.1.lease": user, version; "….1-3.lease" is name number 3. False if it is too long.
bool lease_path(const char* folder, unsigned user, unsigned number, char (&path)[ledger::kPathBytes]);

/// A mapped file, and where it was found.
struct OpenLease {
    File* file = nullptr;
    FileIdentity identity;
    char path[ledger::kPathBytes] = {};
};

/// Maps this user's file, and makes it if need be, with these terms. All of its space is taken first: a page that can't
/// be had later would be a SIGBUS in the host. One with garbage is taken away, its users keeping what they have mapped.
/// False: `why`, which may be null, says why not.
bool open_lease(const ledger::UserFolder& where, const Terms& terms, OpenLease* out, LedgerError* why);
/// Maps it, if it is there and whole; and for reading alone.
bool open_existing_lease(const ledger::UserFolder& where, OpenLease* out, LedgerError* why);
bool open_lease_to_read(const ledger::UserFolder& where, OpenLease* out, LedgerError* why);
/// True if the name leads to no file any more, or to another one: there others meet by now.
bool is_lost(const OpenLease& open);
void close_lease(OpenLease* open);

}  // namespace cuslice::lease
