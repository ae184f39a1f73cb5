// SPDX-License-Identifier: Apache-2.0
// One file's text, in pages of our own rather than the host's heap, which may be the reason why the host is looking at
// itself. No libc function newer than GLIBC_2.17 is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/text.h"

namespace cuslice {

/// Far more than any settings need; a device or a mistaken name must not fill the host's memory.
inline constexpr size_t kMostOfSettings = size_t{1024} * 1024;

/// Says in `why` what an errno means of a file that was to be read: "cannot be read: no such file".
void explain_errno(int code, Reason& why);

/// A file's mode and owners, as fstat has them: they say who may change it.
struct FileRights {
    unsigned mode = 0, owner = 0, group = 0;
};

/// Not for two threads at once.
class TextFile {
  public:
    TextFile() = default;
    ~TextFile();
    TextFile(const TextFile&) = delete;
    TextFile& operator=(const TextFile&) = delete;

    /// 0, or the errno with which it can't be opened. A FIFO is opened without waiting. Once for each object.
    int open(const char* path);
    /// Gets the owner, group and mode of the file by fstat. False, with the reason, if it is no regular file.
    bool look(FileRights& rights, Reason& why) const;
    /// Reads all of it; `most` bytes at most. False with the reason if it can't be read or is larger.
    bool read(size_t most, Reason& why);
    /// The same without a reason, for files of the kernel's and the machine's: an empty text where it can't be read.
    static bool read(TextFile& file, const char* path, size_t most);

    std::string_view view() const { return {at_, size_}; }

  private:
    int descriptor_ = -1;
    char* at_ = nullptr;
    size_t size_ = 0, mapped_ = 0;
};

/// Takes the first line off `text`, without its newline. False where there is none left.
bool take_line(std::string_view& text, std::string_view& line);

}  // namespace cuslice
