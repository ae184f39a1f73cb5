// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/only_root.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace cuslice::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as in the kernel

class Way {
  public:
    Way(const std::string& root, std::string& why) : root_(root), why_(why) {}

    /// From the root on, component by component.
    bool is_roots(const std::string& path) {
        std::string here;
        add_components(path);
        if (!look_at("/"))
            return false;
        while (!components_.empty()) {
            const std::string name = components_.back();
            components_.pop_back();
            if (name.empty() || name == ".")
                continue;
            if (name == "..") {
                here.resize(here.empty() ? 0 : here.rfind('/'));
                continue;
            }
            const std::string next = here + "/" + name;
            if (!look_at(next))
                return false;
            if (!S_ISLNK(about_.st_mode))
                here = next;
            else if (!follow(next, here))
                return false;
        }
        return true;
    }

    bool look_at(const std::string& path) {
        const std::string file = root_ + path;
        if (::lstat(file.c_str(), &about_) != 0)
            return why_ = path + ": " + std::strerror(errno), false;
        if (about_.st_uid != 0)
            return why_ = path + ": belongs to user " + std::to_string(about_.st_uid) + ", and not to root", false;
        if (S_ISLNK(about_.st_mode))
            return true;  // its permissions mean nothing
        const bool others = (about_.st_mode & S_IWOTH) != 0;
        // Where there is an access control list, the group's permission is that of whoever the list names.
        const bool group = (about_.st_mode & S_IWGRP) != 0 &&
                           (about_.st_gid != 0 || ::getxattr(file.c_str(), "system.posix_acl_access", nullptr, 0) > 0);
        if (others || group)
            return why_ = path + ": can be written by others than root", false;
        return true;
    }
    bool is_link() const { return S_ISLNK(about_.st_mode); }

  private:
    void add_components(const std::string& path) {
        size_t end = path.size();
        while (end != std::string::npos && end > 0) {
            const size_t slash = path.rfind('/', end - 1);
            const size_t begin = slash == std::string::npos ? 0 : slash + 1;
            components_.push_back(path.substr(begin, end - begin));
            end = slash;
        }
    }

    bool follow(const std::string& link, std::string& here) {
        std::error_code failure;
        const std::string target = fs::read_symlink(root_ + link, failure).string();
        if (failure || ++links_ > kMostLinks)
            return why_ = link + ": leads nowhere", false;
        if (target.starts_with("/"))
            here.clear();
        add_components(target);
        return true;
    }

    const std::string& root_;
    std::string& why_;
    std::vector<std::string> components_;  // the next one is the last
    struct stat about_ {};
    int links_ = 0;
};

}  // namespace

bool only_root_can_change(const std::string& root, const std::string& path, std::string& why) {
    return Way(root, why).is_roots(path);
}

bool only_root_can_change_all(const std::string& root, const std::string& folder, std::string& why) {
    if (!only_root_can_change(root, folder, why))
        return false;
    std::error_code failure;
    fs::recursive_directory_iterator files(root + folder, failure);
    for (; !failure && files != fs::recursive_directory_iterator(); files.increment(failure)) {
        const std::string inside = files->path().string().substr(root.size());
        Way way(root, why);
        if (!way.look_at(inside))
            return false;
        if (way.is_link() && !only_root_can_change(root, inside, why))
            return false;
    }
    if (failure)
        why = folder + ": " + failure.message();
    return !failure;
}

}  // namespace cuslice::cli
