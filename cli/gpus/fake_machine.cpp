// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/fake_machine.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "config/key.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNew = "new";
// How the folders are named, in the folder of the user's machine.
constexpr std::string_view kNamedPrefix = "machine.", kNewPrefix = "new.";

/// The machine that is asked for; nullptr for the one that is there. A file is written once for everything that the
/// user starts: what it says doesn't hold inside a machine that an outer launcher made, or that CUSLICE_FAKE_DIR names.
const Entry* asked_machine(const Settings& settings, const Environment& environment) {
    const Entry* const machine = find(settings, Key::fake_machine);
    if (machine == nullptr || find(settings, Key::fake) == nullptr)
        return nullptr;
    const bool explicitly = machine->rank.source == Source::flag || machine->rank.source == Source::environment;
    return explicitly || environment.get(kFakeFolderVariable).value_or("").empty() ? machine : nullptr;
}

/// The folder of the user's machine, in which those of all others are. As the fake driver has it (fake/books).
std::string home_of_machines(const Environment& environment) {
    std::string folder = environment.get(kFakeFolderVariable).value_or("");
    if (folder.empty())
        return "/dev/shm/cuslice-fake-" + std::to_string(::getuid());
    while (folder.size() > 1 && folder.back() == '/')
        folder.pop_back();
    const std::string name = folder.substr(folder.rfind('/') + 1);
    // Inside a machine of either kind: another one is beside it.
    if (name.size() < folder.size() && (name.starts_with(kNamedPrefix) || name.starts_with(kNewPrefix)))
        folder.resize(folder.size() - name.size() - 1);
    return folder;
}

std::string folder_of(const Entry& machine, const std::string& home) {
    return home + "/" + std::string(kNamedPrefix) + std::string(machine.value);
}

/// Opened, and made if need be. Somebody else's, as anybody could make in /dev/shm, is refused: files are removed
/// there.
int open_own_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        return -1;
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (folder < 0 || ::fstat(folder, &status) != 0)
        return folder;
    if (status.st_uid == ::geteuid())
        return folder;
    ::close(folder);
    errno = EPERM;
    return -1;
}

int lock(int file, int how) {
    int result = 0;
    do
        result = ::flock(file, how);
    while (result != 0 && errno == EINTR);
    return result;
}

/// Waits until no process is in the books of the machine, or, if `wait` is false, says whether none is. A process that
/// closes what it inherits, as Python's subprocess does, has only that to show.
bool books_unused(const std::string& machine, bool wait) {
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(machine, failed)) {
        if (entry.path().extension() != ".lock")
            continue;
        const int file = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0)
            continue;
        struct flock all {};
        all.l_type = F_WRLCK;
        all.l_whence = SEEK_SET;
        int result = 0;
        do
            result = ::fcntl(file, wait ? F_SETLKW : F_SETLK, &all);
        while (result != 0 && errno == EINTR);
        ::close(file);
        if (result != 0)
            return false;
    }
    return true;
}

void remove_machine(const std::string& machine) {
    std::error_code ignored;
    fs::remove_all(machine, ignored);
}

/// Removes the machines whose programs have ended and whose cleaner was killed. The caller holds the lock of `home`.
void remove_abandoned(const std::string& home) {
    std::vector<std::string> machines;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(home, failed))
        if (entry.path().filename().string().starts_with(kNewPrefix))
            machines.push_back(entry.path().string());
    for (const std::string& machine : machines) {
        const int folder = ::open(machine.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        if (lock(folder, LOCK_EX | LOCK_NB) == 0 && books_unused(machine, false))
            remove_machine(machine);
        ::close(folder);
    }
}

/// The process that removes the machine. Nothing of the program's may be held open by it: pipes would never end.
[[noreturn]] void clean_up(const std::string& home, const std::string& machine) {
    ::setsid();
    if (::chdir("/") != 0)
        ::_exit(1);
    std::vector<int> open_files;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd", failed))
        open_files.push_back(std::atoi(entry.path().filename().c_str()));
    for (const int file : open_files)
        ::close(file);
    const int folder = ::open(machine.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // Until the last copy of the launcher's descriptor is closed.
    if (folder < 0 || lock(folder, LOCK_EX) != 0 || !books_unused(machine, true))
        ::_exit(1);
    // Nobody must take it for abandoned meanwhile.
    const int machines = open_own_folder(home);
    if (machines >= 0 && lock(machines, LOCK_EX) == 0)
        remove_machine(machine);
    ::_exit(0);
}

/// Its parent is init: a program may wait for all its children, and knows nothing of this one.
bool start_cleaner(const std::string& home, const std::string& machine) {
    const pid_t child = ::fork();
    if (child == 0) {
        const pid_t cleaner = ::fork();
        if (cleaner == 0)
            clean_up(home, machine);
        ::_exit(cleaner > 0 ? 0 : 1);
    }
    int status = 1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && status == 0;
}

/// Its folder; empty, and errno set, if it can't be made.
std::string make_new(const std::string& home) {
    const int machines = open_own_folder(home);
    if (machines < 0)
        return {};
    std::string machine = home + "/" + std::string(kNewPrefix) + "XXXXXX";
    // From the folder's making to its lock nobody must take it for abandoned.
    int code = lock(machines, LOCK_EX) == 0 ? 0 : errno;
    if (code == 0) {
        remove_abandoned(home);
        // Not close-on-exec: as long as a copy of it is open, somebody uses the machine.
        const int folder = ::mkdtemp(machine.data()) == nullptr ? -1 : ::open(machine.c_str(), O_RDONLY | O_DIRECTORY);
        if (folder < 0 || lock(folder, LOCK_SH) != 0)
            code = errno;
    }
    ::close(machines);
    if (code == 0 && start_cleaner(home, machine))
        return machine;
    if (code == 0)
        code = EAGAIN;
    ::rmdir(machine.c_str());
    errno = code;
    return {};
}

}  // namespace

std::string named_fake_machine(const Settings& settings, const Environment& environment) {
    const Entry* const machine = asked_machine(settings, environment);
    if (machine == nullptr || machine->value == kNew)
        return {};
    return folder_of(*machine, home_of_machines(environment));
}

bool enter_fake_machine(Environment& environment, const Settings& settings, ConfigError& error) {
    const Entry* const machine = asked_machine(settings, environment);
    if (machine == nullptr)
        return true;
    const std::string home = home_of_machines(environment);
    std::string folder;
    if (machine->value == kNew) {
        folder = make_new(home);
    } else {
        const int machines = open_own_folder(home);
        const int own = machines < 0 ? -1 : open_own_folder(folder_of(*machine, home));
        if (own >= 0)
            folder = folder_of(*machine, home);
        for (const int file : {own, machines})
            if (file >= 0)
                ::close(file);
    }
    if (folder.empty()) {
        const std::string why = "no machine can be made in " + home + ": " + std::strerror(errno) +
                                "; CUSLICE_FAKE_DIR names another folder";
        return refuse_entry(*machine, why, error);
    }
    environment.set(kFakeFolderVariable, folder);
    return true;
}

}  // namespace cuslice::cli
