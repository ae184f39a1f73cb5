// SPDX-License-Identifier: Apache-2.0
// Rights that tests need and a place may not give: a container, a chroot, an ordinary user's account. Each is tried
// once, in a child process. Where it is refused the running case is skipped, in the same words whichever test asks.
#pragma once

#include <string>

namespace cuslice::tests {

/// Processes of users that this machine needn't know.
bool can_be_other_users();

/// Namespaces as unshare(2) takes them, such as CLONE_NEWPID | CLONE_NEWUSER. With CLONE_NEWNS mounts can be made that
/// nobody else sees, and with CLONE_NEWPID beside it a /proc of one's own. `user`: 0 is whoever runs the tests.
bool can_unshare(int flags, unsigned user = 0);

/// Moves this process to namespaces as unshare(2) takes them; into one of users as root, as whom it can make files.
bool enter_namespaces(int flags);

/// Children that a test traces. Some sandboxes don't allow it, and qemu has no ptrace.
bool can_trace();

/// Filters of system calls.
bool can_filter_calls();

/// Processes of other users that read and run what was built, wherever the tree lies. Where a folder on the way to it
/// is closed to them, as /root is, this process moves to a mount namespace of its own in which it is open.
bool can_let_others_in();

}  // namespace cuslice::tests
