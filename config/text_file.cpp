// SPDX-License-Identifier: Apache-2.0
// fstat is a symbol of GLIBC_2.33, so the kernel is asked directly.
#include "config/text_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "config/refuse.h"

namespace cuslice {

void explain_errno(int code, Reason& why) {
    why.assign("cannot be read: ");
    switch (code) {
        case ENOENT:
        case ENOTDIR:
            why.append("no such file");
            return;
        case EACCES:
        case EPERM:
            why.append("permission denied");
            return;
        case ELOOP:
            why.append("too many symbolic links");
            return;
        default:
            why.append("error ", code);
    }
}

TextFile::~TextFile() {
    if (at_ != nullptr)
        ::munmap(at_, mapped_);
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

int TextFile::open(const char* path) {
    // O_NONBLOCK: a FIFO in the file's place must not stop the host.
    do {
        descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    } while (descriptor_ < 0 && errno == EINTR);
    return descriptor_ < 0 ? errno : 0;
}

bool TextFile::look(FileRights& rights, Reason& why) const {
    struct stat status {};
    if (::syscall(SYS_fstat, descriptor_, &status) != 0) {
        explain_errno(errno, why);
        return false;
    }
    rights = {status.st_mode, status.st_uid, status.st_gid};
    if (S_ISREG(status.st_mode))
        return true;
    return refuse("not a regular file", why);
}

bool TextFile::read(size_t most, Reason& why) {
    void* const at = ::mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return refuse("cannot be read: no memory", why);
    at_ = static_cast<char*>(at);
    mapped_ = most;
    while (size_ < most) {
        const ssize_t count = ::read(descriptor_, at_ + size_, most - size_);
        if (count == 0)
            return true;
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            explain_errno(errno, why);
            return false;
        }
        size_ += static_cast<size_t>(count);
    }
    return refuse("larger than 1 MiB: not a file of settings", why);
}

bool TextFile::read(TextFile& file, const char* path, size_t most) {
    Reason unused;
    return file.open(path) == 0 && file.read(most, unused);
}

bool take_line(std::string_view& text, std::string_view& line) {
    if (text.empty())
        return false;
    bool more = false;
    line = take_item(text, '\n', more);
    return true;
}

}  // namespace cuslice
