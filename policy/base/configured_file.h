// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuslice {

/// Why a configured file can't be had.
struct FileError {
    int error = 0;                  // errno
    const char* refused = nullptr;  // a sentence without its subject; null where the kernel refused
    /// The one or the other, for people.
    const char* text() const;
};

/// A file that a setting names, to append to. Other users must not choose what is written to: nothing that they could
/// have put into a folder that they can write to is followed, opened or waited for. There, no component of the path may
/// be a symbolic link, and the file has to be a regular one or a FIFO of this user's, or of the folder's owner, with no
/// other name. In folders of this user's or root's alone, links and character devices are all right. A block device
/// never is. A group can write to a folder if it isn't the process's own one.
///
/// Descriptors are close-on-exec, don't wait, and make no terminal the process's own. Allocates nothing; not
/// thread-safe, and made for one use.
class ConfiguredFile {
  public:
    /// As the kernel calls it.
    enum class Access : int {
        append = O_WRONLY,
        map = O_RDWR,     // appends, and can be mapped
        look = O_RDONLY,  // as little as there is: to know which file it is, or to change its mode
    };
    /// Walks to the folder, a component at a time.
    explicit ConfiguredFile(std::string_view path, Access access = Access::append);
    ~ConfiguredFile();
    ConfiguredFile(const ConfiguredFile&) = delete;
    ConfiguredFile& operator=(const ConfiguredFile&) = delete;

    /// A new file; -1, and EEXIST in `error`, if anything lies there already.
    int make(FileError& error);
    /// The file that is there; -1 if there is none.
    int append(FileError& error);
    /// The one or the other.
    int append_or_make(FileError& error);
    /// Removes it from the folder that was walked to, wherever the path leads now.
    void remove() const;

  private:
    static constexpr size_t kPathBytes = 4096;
    static constexpr size_t kLinkBytes = 1024;

    void walk();
    char* arrive(char* component, char* end);
    char* enter(char* component, char* end);
    char* follow(const char* component, char* end, char mark);
    bool move_to(int folder, int error);
    bool may_have_magic() const;
    FileError look_before(struct stat& before) const;
    FileError look_after(int file, const struct stat& before) const;
    int open_once(FileError& error) const;
    int open_there(FileError& error) const;
    FileError refusal(const struct stat& info) const;
    bool stays(int file, const struct stat& first) const;

    const int access_;       // an Access
    char rest_[kPathBytes];  // of the path, behind the folder that was reached
    const char* name_ = "";  // the last component, in rest_
    int folder_ = -1;
    unsigned links_ = 0;
    bool others_write_ = true;  // into the folder
    bool magic_ = false;        // `name_` is a link of /proc, which stands for a file that somebody has open
    FileError failure_;         // of the walk
};

}  // namespace cuslice
