// SPDX-License-Identifier: Apache-2.0
// Containers of runc, which Docker, containerd and Podman run theirs with: an OCI bundle whose root is an empty folder
// with this machine's programs and libraries bound into it.
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/containers/container.h"

namespace cuslice::tests {
namespace {

using nlohmann::json;

json bind(const std::string& folder, const char* how) {
    return {{"destination", folder}, {"type", "bind"}, {"source", folder}, {"options", {"rbind", how}}};
}

json mounts(const Like& like) {
    json all = json::array();
    all.push_back({{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}});
    all.push_back({{"destination", "/dev"},
                   {"type", "tmpfs"},
                   {"source", "tmpfs"},
                   {"options", {"nosuid", "strictatime", "mode=755", "size=65536k"}}});
    if (like.shm == Shm::host)
        all.push_back(bind("/dev/shm", "rw"));
    if (like.shm == Shm::small)
        all.push_back({{"destination", "/dev/shm"},
                       {"type", "tmpfs"},
                       {"source", "shm"},
                       {"options", {"nosuid", "noexec", "nodev", "mode=1777", "size=64k"}}});
    all.push_back({{"destination", "/tmp"}, {"type", "tmpfs"}, {"source", "tmp"}, {"options", {"mode=1777"}}});
    for (const char* folder : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"})
        if (::access(folder, X_OK) == 0)
            all.push_back(bind(folder, "ro"));
    all.push_back(bind(CUSLICE_TEST_BUILD, "ro"));
    for (const std::string& folder : like.writable)
        all.push_back(bind(folder, "rw"));
    return all;
}

json configuration(const Like& like, const std::string& root) {
    json spaces = json::array();
    for (const char* type : {"pid", "mount", "ipc", "uts"})
        spaces.push_back({{"type", type}});
    json linux_part{{"namespaces", spaces}};
    const bool rootless = ::geteuid() != 0;
    if (like.users || rootless) {
        linux_part["namespaces"].push_back({{"type", "user"}});
        linux_part["uidMappings"] = {{{"containerID", 0}, {"hostID", ::geteuid()}, {"size", 1}}};
        linux_part["gidMappings"] = {{{"containerID", 0}, {"hostID", ::getegid()}, {"size", 1}}};
    }
    json process{{"user", {{"uid", like.user}, {"gid", like.user}}}, {"cwd", "/"}};
    if (!like.proc)
        for (const char* set : {"bounding", "effective", "permitted"})
            process["capabilities"][set] = {"CAP_SYS_ADMIN"};
    return {{"ociVersion", "1.0.2"},
            {"process", process},
            {"root", {{"path", root}, {"readonly", like.read_only}}},
            {"mounts", mounts(like)},
            {"linux", linux_part}};
}

std::string next_name() {
    static int count = 0;
    return "cuslice-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

}  // namespace

const char* const kTool = "runc";

struct Container::Made {
    explicit Made(const Like& like) : name(next_name()) {
        const std::string root = bundle.path() + "/root";
        ::mkdir(root.c_str(), 0755);
        ::chmod(bundle.path().c_str(), 0755);
        bundle.write("template.json", configuration(like, root).dump(1));
    }
    // runc itself ends with its container, but for one that was killed.
    ~Made() { run({"/usr/bin/env", "runc", "--root", bundle.path() + "/state", "delete", "--force", name}, plain()); }
    Folder bundle;
    std::string name;
};

Container::Container(const Like& like) : like_(like), made_(std::make_unique<Made>(like)) {}
Container::~Container() = default;

// The program and its environment stand in the bundle: a program of ours writes them there, and becomes runc.
Words Container::command(const Words& program) const {
    Words words{CUSLICE_TEST_RUN_BUNDLE, made_->bundle.path(), made_->name};
    // runc can't start without /proc. So it is hidden from within.
    if (!like_.proc)
        words.insert(words.end(), {"/bin/sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"});
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

// Only the program in it is another user's.
Words Container::before() const { return {}; }

}  // namespace cuslice::tests
