// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/file.h"
#include "policy/ledger/header_lock.h"

// The file of this process's user for one GPU: opened, and made where there is none.
namespace cuslice::ledger {

// Maps this user's file of a GPU of `capacity` bytes, and makes it if need be: the space is taken before it is used,
// for a page that can't be had later would be a SIGBUS in the host. A file of another size or with garbage is replaced,
// its old users keeping what they have mapped. A file that is made begins with what processes hold that still use one
// which was removed (carry.h), of which this process may have one mapped: `gone`, or null. It has the first of its
// names that no other user has taken: `path` is set to it. `self`: this process, and the folder, which is there.
// `keep_over_exec`: see opened().
bool open_own(const Locker& self, const char* uuid, uint64_t capacity, bool keep_over_exec, Deadline deadline,
              OpenFile* out, char (&path)[kPathBytes], LedgerError* why, const OpenFile* gone = nullptr);

// The same, but only if it is there and good.
bool open_existing(const UserFolder& where, const char* uuid, OpenFile* out, char (&path)[kPathBytes],
                   LedgerError* why);

}  // namespace cuslice::ledger
