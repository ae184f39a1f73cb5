// SPDX-License-Identifier: Apache-2.0
// cuslice install --system: puts the stub into /etc/ld.so.preload, of this machine or of an image, and out again. The
// stub is tried first; the list changes at once or not at all; and if programs don't start then, it is put back.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/commands.h"
#include "cli/launch/installation.h"
#include "cli/launch/only_root.h"
#include "cli/launch/preload_list.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"

namespace cuslice::cli {
namespace {

namespace fs = std::filesystem;

// Not a folder of the package's: it is there after the package is gone, and no folder that ldconfig looks at.
constexpr const char* kFolder = "/usr/lib/cuslice-system";
constexpr const char* kStub = "/usr/lib/cuslice-system/libcuslice-preload.so";
constexpr const char* kList = "/etc/ld.so.preload";

constexpr const char* kWhyRoots =
    "; every program of the machine would load it, root's too: install cuslice where only root can write, as in /opt";

std::string why(const std::string& path) { return path + ": " + std::strerror(errno); }

// The system that is changed: this machine, or the one whose files lie in a folder.
class Target {
  public:
    explicit Target(std::string root) : root_(std::move(root)) {}

    std::string at(const std::string& path) const { return root_ + path; }
    const std::string& root() const { return root_; }
    /// The target's name for a path of this process.
    std::string inside(const std::string& path) const {
        return !root_.empty() && path.starts_with(root_ + "/") ? path.substr(root_.size()) : path;
    }

    /// True if /bin/true runs in the target and the loader prints nothing; otherwise `error` says what is wrong.
    bool runs(const std::string& preload, std::string& error) const {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0)
            return error = why("a pipe"), false;
        const pid_t child = ::fork();
        if (child == 0)
            start(preload, ends[1]);
        ::close(ends[1]);
        std::string said;
        char part[512];
        for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;)
            said.append(part, got);
        ::close(ends[0]);
        int status = 0;
        if (child < 0 || ::waitpid(child, &status, 0) != child)
            return error = why("/bin/true"), false;
        if (status == 0 && said.empty())
            return true;
        error = "/bin/true " + (said.empty() ? "ended with status " + std::to_string(status) : "said: " + said);
        while (error.ends_with('\n'))
            error.pop_back();
        return false;
    }

  private:
    [[noreturn]] void start(const std::string& preload, int output) const {
        std::string variable = "LD_PRELOAD=" + preload;
        char* environment[] = {preload.empty() ? nullptr : variable.data(), nullptr};
        char name[] = "true";
        char* words[] = {name, nullptr};
        ::dup2(output, 1);
        ::dup2(output, 2);
        if (!root_.empty() && (::chroot(root_.c_str()) != 0 || ::chdir("/") != 0))
            ::dprintf(2, "it can't be run in %s: %s", root_.c_str(), std::strerror(errno));
        else
            for (const char* program : {"/bin/true", "/usr/bin/true"})
                ::execve(program, words, environment);
        if (errno == ENOENT)
            ::dprintf(2, "there is none");
        ::_exit(127);
    }

    std::string root_;
};

// Written whole beside its place, and moved there: a program that starts meanwhile sees the old file or the new one.
bool replace(const std::string& path, const std::string& content, mode_t mode, std::string& error) {
    const std::string beside = path + ".cuslice-new";
    const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    bool done = file >= 0 && ::fchmod(file, mode) == 0 &&
                ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
                ::fsync(file) == 0;
    if (!done)
        error = why(beside);
    if (file >= 0)
        ::close(file);
    if (done && ::rename(beside.c_str(), path.c_str()) != 0)
        error = why(path), done = false;
    if (!done)
        ::unlink(beside.c_str());
    return done;
}

bool read(const std::string& path, std::string& content) {
    std::ifstream file(path, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(file), {});
    return file.good() || file.eof();
}

struct List {
    std::string path, text;
    mode_t mode = 0644;
    bool there = false;

    bool open(std::string& error) {
        struct stat about {};
        if (::lstat(path.c_str(), &about) != 0)
            return errno == ENOENT || (error = why(path), false);
        if (!S_ISREG(about.st_mode))
            return error = path + ": is no regular file", false;
        there = true;
        mode = about.st_mode & 07777;
        return read(path, text) || (error = why(path), false);
    }
    /// An empty list is none.
    bool change(const std::string& to, std::string& error) const {
        if (to.empty() && !there)
            return true;
        if (!to.empty())
            return replace(path, to, mode, error);
        return ::unlink(path.c_str()) == 0 || (error = why(path), false);
    }
};

void remove_files(const Target& target) {
    for (const char* name : {"/libcuslice-preload.so", "/libcuslice-preload.so.cuslice-try", "/library"})
        ::unlink(target.at(kFolder + std::string(name)).c_str());
    ::rmdir(target.at(kFolder).c_str());
}

// The stub at its place, tried before it is there, and the link that leads it to the library.
bool place_stub(const Target& target, const std::string& content, const std::string& libraries, std::string& error) {
    std::error_code failure;
    // Not for others to write to, whatever the umask.
    const bool made = fs::create_directories(target.at(kFolder), failure);
    if (failure)
        return error = target.at(kFolder) + ": " + failure.message(), false;
    if (made && ::chmod(target.at(kFolder).c_str(), 0755) != 0)
        return error = why(kFolder), false;
    const std::string tried = std::string(kStub) + ".cuslice-try", link = target.at(std::string(kFolder) + "/library");
    if (!replace(target.at(tried), content, 0755, error) || !target.runs(tried, error))
        return false;
    const std::string new_link = link + ".cuslice-new";
    ::unlink(new_link.c_str());
    if (::symlink(libraries.c_str(), new_link.c_str()) != 0 || ::rename(new_link.c_str(), link.c_str()) != 0)
        return error = why(link), false;
    return ::rename(target.at(tried).c_str(), target.at(kStub).c_str()) == 0 || (error = why(kStub), false);
}

// An image's links are its author's: through one that leads out of it, this machine's files would be changed.
bool is_within(const std::string& root, const std::string& folder, std::string& error) {
    std::error_code failure;
    const std::string path = root + folder, real = fs::weakly_canonical(path, failure).string();
    if (!failure && (real + "/").starts_with(root + "/"))
        return true;
    error = path + ": " + (failure ? failure.message() : "leads to " + real + ", which is not in " + root);
    return false;
}

bool open_root(const Invocation& invocation, std::string& root, std::string& error) {
    if (invocation.arguments.root.empty())
        return true;
    std::error_code failure;
    root = fs::canonical(invocation.arguments.root, failure).string();
    if (failure)
        return error = invocation.arguments.root + ": " + failure.message(), false;
    if (root == "/")
        root.clear();
    return root.empty() || (is_within(root, "/etc", error) && is_within(root, kFolder, error));
}

}  // namespace

int install_stub(const Invocation& invocation) {
    ConfigError missing;
    Installation installation;
    if (!find_installation(installation, missing))
        return fail(missing, kConfig);
    std::string root, error, stub;
    if (!open_root(invocation, root, error))
        return fail(error, kUnavailable);
    const Target target(root);
    const std::string folder = installation.library.substr(0, installation.library.rfind('/'));
    const std::string libraries = target.inside(folder), own = folder + "/libcuslice-preload.so";
    // Before anything is read: afterwards nobody else can exchange it. The stub is read from this installation, which
    // needn't be in there.
    const bool roots = only_root_can_change_all(root, libraries, error) &&
                       (libraries != folder || root.empty() || only_root_can_change_all("", folder, error));
    if (!roots)
        return fail(error + kWhyRoots, kConfig);
    if (!read(own, stub) || stub.empty())
        return fail(own + ": no such file: this installation is not whole", kConfig);
    if (::access(target.at(libraries + "/libcuslice.so").c_str(), R_OK) != 0)
        return fail(target.at(libraries) + ": has no libcuslice.so: install cuslice there first", kConfig);

    List list{target.at(kList)};
    if (!list.open(error))
        return fail(error, kUnavailable);
    const bool fresh = !fs::exists(target.at(kStub));
    // By an exchange of what lies in it.
    const bool placed = fs::exists(target.at(kFolder));
    if (placed && !only_root_can_change(root, kFolder, error))
        return fail(error + kWhyRoots, kConfig);
    if (!place_stub(target, stub, libraries, error)) {
        if (fresh)
            remove_files(target);
        ::unlink((target.at(kStub) + ".cuslice-try").c_str());
        return fail(error, kUnavailable);
    }
    if (!lists(list.text, kStub)) {
        bool good = list.change(with_path(list.text, kStub), error);
        if (good && !target.runs("", error)) {
            std::string unused;
            list.there ? replace(list.path, list.text, list.mode, unused) : ::unlink(list.path.c_str()) == 0;
            good = false;
        }
        if (!good) {
            if (fresh)
                remove_files(target);
            return fail(error, kUnavailable);
        }
    }
    std::printf("%s names %s, which loads %s/libcuslice.so\n", list.path.c_str(), kStub, libraries.c_str());
    for (const char* loader : {"/lib/ld-linux.so.2", "/lib/ld-linux-armhf.so.3"})
        if (fs::exists(target.at(loader)))
            warn("32-bit programs run here too: for each of them the loader prints a line, as the stub has 64 bits");
    return 0;
}

int uninstall_stub(const Invocation& invocation) {
    std::string root, error;
    if (!open_root(invocation, root, error))
        return fail(error, kUnavailable);
    const Target target(root);
    List list{target.at(kList)};
    if (!list.open(error))
        return fail(error, kUnavailable);
    const bool listed = lists(list.text, kStub);
    // First the list: no program may look for a stub that is gone.
    if (listed && !list.change(without_path(list.text, kStub), error))
        return fail(error, kUnavailable);
    remove_files(target);
    std::printf(listed ? "%s no longer names %s\n" : "%s does not name %s\n", list.path.c_str(), kStub);
    return 0;
}

}  // namespace cuslice::cli
