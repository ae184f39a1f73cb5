// SPDX-License-Identifier: Apache-2.0
#pragma once

// Users by the numbers that the host has for them. In a user namespace, as rootless containers have one, everybody may
// be user 0: what two of them share is named by who they are outside.
namespace cuslice::ledger {

// The effective user of this process, whose ledgers lie in this folder. A user namespace knows its users' numbers in
// the one around it, which may be another than the host's: there a file of this user's says the number, as nobody else
// can make one.
unsigned this_user(const char* folder);

// True if a file that belongs to `owner`, as this process sees it, may be `user`'s, as this_user() counts. All users
// without a number in this namespace look the same, and are believed to be who the file's name says; so is this user,
// whose number outside may not be known.
bool belongs_to(unsigned owner, unsigned user);

// The same for a namespace's map, as /proc/self/uid_map has it: a line "inside outside count" for each range. `mapped`
// says whether the number has another side.
unsigned outside_of(const char* map, unsigned inside, bool* mapped);

}  // namespace cuslice::ledger
