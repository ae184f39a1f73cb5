// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/folder_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "cli/gpus/ask_child.h"
#include "policy/ledger/folder.h"
#include "policy/ledger/locks.h"

namespace cuslice::cli::doctor {
namespace {

// Size of a new ledger (docs/sharing.md).
constexpr uint64_t kLedgerBytes = 264ull * 1024;

// An answer is a letter for the grade, then name, what was seen and advice, divided by NULs, which no path has.
constexpr char kOk = 'o', kWarning = 'w', kProblem = 'p', kDivider = '\0';

Finding problem(const std::string& name, const std::string& seen, const std::string& advice) {
    return {Grade::problem, name, seen, advice};
}

std::string parent_of(const std::string& folder) {
    const size_t slash = folder.find_last_of('/');
    return slash == folder.npos ? "." : slash == 0 ? "/" : folder.substr(0, slash);
}

// Room, as far as the file system tells, and that it takes files at all.
std::optional<Finding> look_at_room(const std::string& folder) {
    constexpr const char* kAdvice =
        "Make room there (in a container: docker run --shm-size), or name another folder with --dir";
    struct statvfs system {};
    if (::statvfs(folder.c_str(), &system) != 0)
        return std::nullopt;
    if ((system.f_flag & ST_RDONLY) != 0)
        return problem("folder-space", folder + ": the file system is read-only, so no ledger can be made", kAdvice);
    if (uint64_t{system.f_bavail} * system.f_frsize < kLedgerBytes)
        return problem("folder-space",
                       folder + ": the file system has " +
                           std::to_string(uint64_t{system.f_bavail} * system.f_frsize / 1024) +
                           " KiB left, and a ledger takes " + std::to_string(kLedgerBytes / 1024) + " KiB",
                       kAdvice);
    return std::nullopt;
}

// With a file that has no name. Where a file system has no such files nothing is known, and nothing is said.
std::optional<Finding> look_at_locks(const std::string& folder) {
    const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return std::nullopt;
    const bool locked = ledger::lock_byte(file, 1) != ledger::LockKind::none;
    const int error = errno;
    ::close(file);
    if (locked)
        return std::nullopt;
    return problem("folder-locks", folder + ": the file system refuses locks: " + std::strerror(error),
                   "Name a folder on a local file system with --dir, as in /dev/shm or /run");
}

Finding look_at(const std::string& folder) {
    struct stat info {};
    if (::lstat(folder.c_str(), &info) != 0) {
        const std::string parent = parent_of(folder);
        const int error = errno;
        if (error != ENOENT || ::access(parent.c_str(), W_OK | X_OK) != 0)
            return problem("folder-missing", folder + ": not there, and can't be made: " + std::strerror(errno),
                           "Make it, for everybody and sticky (chmod 1777), or name another folder with --dir");
        if (const auto full = look_at_room(parent))
            return *full;
        return {Grade::ok, "folder", folder + " is not there yet; the first program makes it", {}};
    }
    if (!S_ISDIR(info.st_mode))
        return problem("folder-kind", folder + ": not a folder", "Remove it, or name another folder with --dir");
    if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
        return problem("folder-sticky", folder + ": everybody may delete what others have there, so no ledger is kept",
                       "chmod +t " + folder);
    if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
        return {Grade::warning, "folder-rights",
                folder + ": this user may not write there, so no program that shares a limit starts",
                "chmod 1777 " + folder + ", or name another folder with --dir"};
    if (const auto full = look_at_room(folder))
        return *full;
    if (const auto without = look_at_locks(folder))
        return *without;
    return {Grade::ok, "folder", folder + " takes ledgers", {}};
}

// Up to the next divider, or the end.
std::string take(std::string_view& text) {
    const size_t end = std::min(text.find(kDivider), text.size());
    std::string part(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

}  // namespace

Finding ask_about_folder(const Installation& installation, const Environment& environment, const std::string& folder) {
    constexpr std::chrono::seconds kPatience{10};
    const Answer answer = ask_child(installation, environment, {kAskFolder, folder}, kPatience);
    if (!answer.failure.empty() || answer.text.empty())
        return problem("folder-hangs", folder + ": " + (answer.failure.empty() ? "no answer" : answer.failure),
                       "Look at the file system that it is on, or name another folder with --dir");
    std::string_view text(answer.text);
    const std::string grade = take(text);
    Finding finding{grade[0] == kOk ? Grade::ok : grade[0] == kWarning ? Grade::warning : Grade::problem, {}, {}, {}};
    finding.name = take(text);
    finding.seen = take(text);
    finding.advice = text;
    return finding;
}

std::string answer_of_folder(const std::string& folder) {
    const Finding found = look_at(folder);
    const char grade = found.grade == Grade::ok ? kOk : found.grade == Grade::warning ? kWarning : kProblem;
    return std::string(1, grade) + kDivider + found.name + kDivider + found.seen + kDivider + found.advice;
}

}  // namespace cuslice::cli::doctor
