// SPDX-License-Identifier: Apache-2.0
// Predicts whether systemd-logind removes a user's files from /dev/shm.
#pragma once

#include "cli/doctor/setup.h"

namespace cuslice::cli::doctor {

/// True if logind removes what this user has in /dev/shm when their last session ends: systemd runs, the user is no
/// system's user and doesn't linger, and RemoveIPC is not off in logind.conf and the files beside it.
bool removes_ipc(const Setup& setup);

}  // namespace cuslice::cli::doctor
