// SPDX-License-Identifier: Apache-2.0
// Containers of bubblewrap: what Flatpak and many sandboxes are made with.
#include "tests/containers/container.h"

namespace cuslice::tests {

const char* const kTool = "bwrap";

struct Container::Made {};

Container::Container(const Like& like) : like_(like) {}
Container::~Container() = default;

Words Container::command(const Words& program) const {
    Words words{"/usr/bin/env",
                "bwrap",
                "--die-with-parent",
                "--unshare-pid",
                "--unshare-ipc",
                "--unshare-uts",
                like_.read_only ? "--ro-bind" : "--bind",
                "/",
                "/"};
    if (like_.users)
        words.insert(words.end(), {"--unshare-user", "--uid", "0", "--gid", "0"});
    if (like_.shm == Shm::none) {
        words.insert(words.end(), {"--tmpfs", "/dev"});
        for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
            words.insert(words.end(), {"--dev-bind", device, device});
    } else {
        words.insert(words.end(), {"--dev", "/dev"});
        if (like_.shm == Shm::small)
            words.insert(words.end(), {"--size", "65536", "--tmpfs", "/dev/shm"});
        if (like_.shm == Shm::host)
            words.insert(words.end(), {"--bind", "/dev/shm", "/dev/shm"});
    }
    words.insert(words.end(), {like_.proc ? "--proc" : "--tmpfs", "/proc"});
    for (const std::string& folder : like_.writable)
        words.insert(words.end(), {"--bind", folder, folder});
    words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

Words Container::before() const { return as_user(like_.user); }

}  // namespace cuslice::tests
