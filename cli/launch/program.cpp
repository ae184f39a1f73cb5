// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "cli/launch/elf_file.h"
#include "cli/text/exit_codes.h"
#include "elf/machine.h"

namespace cuslice::cli {
namespace {

constexpr const char* kNoSlice = "so this program gets no slice";
constexpr std::string_view kGnuLoader = ELF_LOADER_NAME;

// The error that execve would give for a file, without starting it; 0 if it may be executed.
int why_not_executable(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : EACCES;
}

// The codes of POSIX shells: 127 nothing of that name, 126 something that cannot be started.
Program not_started(const std::string& name, int code) {
    const bool missing = code == ENOENT || code == ENOTDIR;
    return {{}, missing ? kNotFound : kNotStarted, name + ": " + std::strerror(code)};
}

// The first bytes of a file, as many as there are.
std::string head_of(const std::string& path, size_t size) {
    std::string head(size, '\0');
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t count = descriptor < 0 ? -1 : ::read(descriptor, head.data(), head.size());
    if (descriptor >= 0)
        ::close(descriptor);
    head.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return head;
}

// The first word after #!, as the kernel reads it.
std::string interpreter_of(const std::string& head) {
    if (!head.starts_with("#!"))
        return {};
    const std::string line = head.substr(2, head.find('\n') == head.npos ? head.npos : head.find('\n') - 2);
    const size_t first = line.find_first_not_of(" \t");
    if (first == line.npos)
        return {};
    return line.substr(first, line.find_first_of(" \t\r", first) - first);
}

// The GNU C library's loader, under whatever name: bundles rename it. In doubt true: a warning that is wrong would
// teach people to ignore it.
bool is_gnu_loader(std::string_view path) {
    if (path.substr(path.rfind('/') + 1).starts_with("ld-linux"))
        return true;
    const ElfFile loader{std::string(path)};
    return !loader.is_elf() || loader.soname() == kGnuLoader;
}

// A file that is no ELF is some other kernel module's to run; nothing is known of it.
Reach reach_of(const std::string& path) {
    const ElfFile file(path);
    if (!file.is_elf())
        return {};
    if (!file.is_native())
        return {path + ": not an " ELF_MACHINE_NAME " program: the loader ignores LD_PRELOAD there, " + kNoSlice};
    const std::string loader = file.interpreter();
    if (loader.empty()) {
        // The loader may itself be the program, and be told what to start.
        if (file.soname() == kGnuLoader)
            return {};
        return {path + ": statically linked: there is no loader that could preload the library, " + kNoSlice};
    }
    if (is_gnu_loader(loader))
        return {};
    return {path + ": its loader " + loader + " is not the GNU C library's, which libcuslice.so needs, " + kNoSlice,
            true};
}

// The kernel sets AT_SECURE for these, and the loader then ignores LD_PRELOAD.
std::string why_secure(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        return {};
    const char* what = nullptr;
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid())
        what = "set-user-ID";
    if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid())
        what = "set-group-ID";
    if (::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
        what = "has capabilities";
    if (what == nullptr)
        return {};
    return path + ": " + what + ": the loader ignores LD_PRELOAD there, " + kNoSlice;
}

}  // namespace

Program find_program(const std::string& name, const Environment& environment) {
    if (name.find('/') != name.npos) {
        const int code = why_not_executable(name);
        return code == 0 ? Program{name, 0, {}} : not_started(name, code);
    }
    if (name.empty())
        return {{}, kNotFound, "\"\": command not found"};
    // As execvp: without PATH the system's own folders, an empty element is the current folder.
    const std::string folders = environment.get("PATH").value_or("/bin:/usr/bin");
    int found_but = 0;
    for (size_t at = 0; at <= folders.size();) {
        const size_t end = std::min(folders.find(':', at), folders.size());
        const std::string folder = folders.substr(at, end - at);
        const std::string path = (folder.empty() ? "." : folder) + "/" + name;
        const int code = why_not_executable(path);
        if (code == 0)
            return {path, 0, {}};
        if (code == EACCES)
            found_but = code;
        at = end + 1;
    }
    if (found_but != 0)
        return not_started(name, found_but);
    return {{}, kNotFound, name + ": command not found"};
}

std::string started_file(const std::string& path) {
    // The kernel follows this many scripts whose interpreters are scripts.
    constexpr int kScripts = 4;
    constexpr size_t kShebang = 256;
    std::string file = path;
    for (int i = 0; i < kScripts; ++i) {
        const std::string interpreter = interpreter_of(head_of(file, kShebang));
        if (interpreter.empty())
            break;
        file = interpreter;
    }
    return file;
}

Reach look_at_reach(const std::string& path) {
    const std::string file = started_file(path);
    const std::string secure = why_secure(file);
    return secure.empty() ? reach_of(file) : Reach{secure};
}

}  // namespace cuslice::cli
