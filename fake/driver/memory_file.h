// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are only in memory, by which processes share what the fake GPU holds.

#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cuslice::fake {

/// memfd_create, which the C library has itself from 2.27 on: a descriptor that exec closes, or -1 with errno.
inline int memory_file(const char* name) { return static_cast<int>(::syscall(SYS_memfd_create, name, MFD_CLOEXEC)); }

}  // namespace cuslice::fake
