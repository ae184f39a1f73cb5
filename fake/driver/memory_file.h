// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are only in memory, by which processes share what the fake GPU holds.

namespace cuslice::fake {

/// A file without a name that an exec closes, sparse until it is written: its descriptor, or -1 with errno.
/// memfd_create, which kernels have from 3.17 on; where one lacks it, or a sandbox refuses it, a file of /dev/shm whose
/// name is gone.
int memory_file(const char* name);

}  // namespace cuslice::fake
