// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cuslice::cli {

void settle_descriptors() {
    constexpr int kFirstOwn = 10;
    // Where there are few to be had they are needed more.
    constexpr rlim_t kPlenty = 64;
    rlimit most{};
    const bool plenty = ::getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur >= kPlenty;
    const int first_own = plenty ? kFirstOwn : STDERR_FILENO + 1;
    for (;;) {
        // The lowest free number, each time: so they are filled one after the other.
        const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        if (file < 0)
            return;
        if (file >= first_own) {
            ::close(file);
            return;
        }
        if (file <= STDERR_FILENO)
            ::fcntl(file, F_SETFD, 0);
    }
}

}  // namespace cuslice::cli
