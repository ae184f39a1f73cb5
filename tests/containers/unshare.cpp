// SPDX-License-Identifier: Apache-2.0
// Containers made by hand: unshare, and the mounts that a container's runtime would make.
#include <unistd.h>

#include "tests/containers/container.h"

namespace cuslice::tests {

const char* const kTool = "unshare";

// Run in the new namespaces, with the folder of files of ours as its first word. /proc goes last: mount reads it.
struct Container::Made {
    explicit Made(const Like& like) {
        std::string script = "set -e\nfiles=$1\nshift\n";
        if (like.read_only) {
            for (const std::string& folder : like.writable)
                script += "mount -n --bind " + folder + " " + folder + "\n";
        }
        if (like.shm == Shm::small)
            script += "mount -n -t tmpfs -o size=64k shm /dev/shm\n";
        if (like.shm == Shm::none) {
            script += "mkdir $files/dev\nmount -n -t tmpfs dev $files/dev\n";
            for (const char* device : {"null", "zero", "full", "random", "urandom"})
                script += std::string("touch $files/dev/") + device + "\nmount -n --bind /dev/" + device +
                          " $files/dev/" + device + "\n";
            script += "mount -n --move $files/dev /dev\n";
        }
        if (like.read_only)
            script += "mount -n -o remount,bind,ro /\n";
        script += like.proc ? "mount -n -t proc proc /proc\n" : "mount -n -t tmpfs none /proc\n";
        path = files.write("start.sh", script + "exec \"$@\"\n");
        if (like.user != 0 && ::chown(files.path().c_str(), like.user, like.user) != 0)
            path.clear();
    }
    Folder files;
    std::string path;
};

Container::Container(const Like& like) : like_(like), made_(std::make_unique<Made>(like)) {}
Container::~Container() = default;

Words Container::command(const Words& program) const {
    Words words{"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount", "--ipc", "--uts"};
    if (like_.users)
        words.insert(words.end(), {"--user", "--map-root-user"});
    // Only root may mount without a user namespace; in there nobody but itself is known by a number.
    if (like_.user != 0 || (::geteuid() != 0 && !like_.users))
        words.insert(words.end(), {"--user", "--map-current-user", "--keep-caps"});
    words.insert(words.end(), {"/bin/sh", made_->path, made_->files.path()});
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

Words Container::before() const { return as_user(like_.user); }

}  // namespace cuslice::tests
