// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/memory_file.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cuslice::fake {

int memory_file(const char* name) {
    // The C library has it itself from 2.27 on.
    const auto file = static_cast<int>(::syscall(SYS_memfd_create, name, MFD_CLOEXEC));
    if (file >= 0)
        return file;
    char path[] = "/dev/shm/cuslice-memory-XXXXXX";
    const int named = ::mkostemp(path, O_CLOEXEC);
    if (named >= 0)
        ::unlink(path);
    return named;
}

}  // namespace cuslice::fake
