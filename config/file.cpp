// Reading one file. No libc function newer than GLIBC_2.17 is used: fstat is a symbol of 2.33, so the kernel is asked
// directly.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "config/load.h"

namespace cuslice {
namespace {

// Far more than any settings need; a device or a mistaken name must not fill the host's memory.
constexpr std::size_t kMaxBytes = std::size_t{1024} * 1024;

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
            why.append("error ").append_number(static_cast<std::uint64_t>(code));
    }
}

class OpenFile {
  public:
    explicit OpenFile(const char* path) {
        // O_NONBLOCK: a FIFO in the file's place must not stop the host.
        do {
            descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        } while (descriptor_ < 0 && errno == EINTR);
    }
    ~OpenFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int descriptor() const { return descriptor_; }

  private:
    int descriptor_ = -1;
};

// Pages of our own rather than the host's heap, which may be the reason why the host is looking at itself.
class Pages {
  public:
    Pages() {
        void* const at = ::mmap(nullptr, kMaxBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at_ = at == MAP_FAILED ? nullptr : static_cast<char*>(at);
    }
    ~Pages() {
        if (at_ != nullptr) ::munmap(at_, kMaxBytes);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    char* get() const { return at_; }

  private:
    char* at_ = nullptr;
};

bool read_all(int descriptor, char* to, std::size_t& size, Reason& why) {
    for (size = 0; size < kMaxBytes;) {
        const ssize_t count = ::read(descriptor, to + size, kMaxBytes - size);
        if (count == 0) return true;
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            explain_errno(errno, why);
            return false;
        }
        size += static_cast<std::size_t>(count);
    }
    why.assign("larger than 1 MiB: not a file of settings");
    return false;
}

bool check_kind(int descriptor, Source source, Reason& why) {
    struct stat status {};
    if (::syscall(SYS_fstat, descriptor, &status) != 0) {
        explain_errno(errno, why);
        return false;
    }
    if (!S_ISREG(status.st_mode)) {
        why.assign("not a regular file");
        return false;
    }
    // Its ceilings are the administrator's; who may write them may raise them.
    if (source == Source::system_file && (status.st_mode & S_IWOTH) != 0) {
        why.assign("writable by everybody, so nobody can trust its ceilings: chmod o-w it");
        return false;
    }
    return true;
}

// Nobody may enter a folder on the way to it, so nobody can have meant it: a HOME of another user, as in containers. A
// path alone is opened wherever the folders may be entered, whoever may read the file.
bool is_unreachable(const char* path) {
    const int descriptor = ::open(path, O_PATH | O_CLOEXEC);
    if (descriptor < 0) return errno == EACCES;
    ::close(descriptor);
    return false;
}

}  // namespace

bool load_file(Settings& settings, const char* path, Source source, OpenToml open_toml, FileState& state,
               ConfigError& error) {
    state = FileState::absent;
    Reason why;
    const OpenFile file(path);
    if (file.descriptor() < 0) {
        const int code = errno;
        if (source != Source::config_file && (code == ENOENT || code == ENOTDIR)) return true;
        if (source == Source::user_file && code == EACCES && is_unreachable(path)) {
            state = FileState::unreachable;
            settings.pass_over(path);
            return true;
        }
        explain_errno(code, why);
        return error.set(path, why.view());
    }
    state = FileState::found;
    const Pages pages;
    std::size_t size = 0;
    if (!check_kind(file.descriptor(), source, why)) return error.set(path, why.view());
    if (pages.get() == nullptr) return error.set(path, "cannot be read: no memory");
    if (!read_all(file.descriptor(), pages.get(), size, why)) return error.set(path, why.view());
    cuslice_toml_parse_function* const parse = open_toml(why);
    if (parse == nullptr) return error.set(path, why.view());
    return load_file_text(settings, {pages.get(), size}, path, source, parse, error);
}

bool load_named_file(Settings& settings, const char* path, std::string_view origin, OpenToml open_toml,
                     FileState& state, ConfigError& error) {
    if (load_file(settings, path, Source::config_file, open_toml, state, error)) return true;
    // What is wrong with the file as a whole is wrong with the setting that names it.
    if (error.line != 0) return false;
    const Reason why(error.reason.view());
    return error.set(origin, path, why.view());
}

}  // namespace cuslice
