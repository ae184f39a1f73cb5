// SPDX-License-Identifier: Apache-2.0
#include "policy/stats/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/directory_entry.h"
#include "config/number.h"
#include "policy/base/own_descriptors.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::stats {

namespace {

constexpr char kEnd[] = ".figures";
constexpr mode_t kOwnerOnly = 0600;

File* fail(LedgerError* why, const char* what, const char* path, int error) {
    snprintf(why->text, sizeof why->text, "%s %s: %s", what, path, strerror(error));
    return nullptr;
}

// 0, ENOENT if /proc doesn't say which process this is, or ENAMETOOLONG.
int own_path(const char* folder, char (&path)[ledger::kPathBytes]) {
    const ledger::ProcessIdentity self = ledger::this_process();
    if (!self.start_time || !self.pid_namespace)
        return ENOENT;
    NameText name;
    write_name({self.pid_namespace, self.pid, self.start_time}, name);
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return static_cast<size_t>(length) < sizeof path ? 0 : ENAMETOOLONG;
}

}  // namespace

void write_name(const Name& name, NameText& text) {
    snprintf(text, sizeof text, "%llu-%d-%llu%s", static_cast<unsigned long long>(name.pid_namespace), name.pid,
             static_cast<unsigned long long>(name.start_time), kEnd);
}

bool parse_name(const char* text, Name* name) {
    uint64_t numbers[3];
    const char* at = text;
    for (unsigned i = 0; i < 3; i++) {
        const char* end = nullptr;
        if (*at < '0' || *at > '9')
            return false;
        numbers[i] = read_number(at, &end);
        if (i < 2 && *end != '-')
            return false;
        at = end + (i < 2 ? 1 : 0);
    }
    if (strcmp(at, kEnd) != 0 || numbers[1] > 0x7fffffffu)
        return false;
    *name = {numbers[0], static_cast<int32_t>(numbers[1]), numbers[2]};
    return true;
}

File* make_own(const char* folder, LedgerError* why) {
    if (!ledger::make_folder(folder, why))
        return nullptr;
    char path[ledger::kPathBytes];
    if (const int error = own_path(folder, path))
        return error == ENOENT ? fail(why, "can't tell which process this is,", "/proc", error)
                               : fail(why, "can't use", folder, error);
    if (!file_may_have(sizeof(File)))
        return fail(why, "no room for", path, EFBIG);
    remove_dead(folder);
    unlink(path);  // of what this process was before an exec
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly);
    if (file < 0)
        return fail(why, "can't make", path, errno);
    fchmod(file, kOwnerOnly);  // a umask may have taken more
    const int full = posix_fallocate(file, 0, sizeof(File));
    void* memory = full == 0 ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    const int error = full != 0 ? full : errno;
    close(file);
    if (memory == MAP_FAILED) {
        unlink(path);
        return fail(why, "no room for", path, error);
    }
    auto* made = static_cast<File*>(memory);
    made->size = sizeof(File);
    made->version = kVersion;
    made->magic = kMagic;
    return made;
}

void remove_own(const char* folder) {
    char path[ledger::kPathBytes];
    if (own_path(folder, path) == 0)
        unlink(path);
}

void remove_dead(const char* folder) {
    const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    const uint64_t here = ledger::read_pid_namespace();
    alignas(DirectoryEntry) char buffer[4096];
    for_each_entry(directory, buffer, [&](const DirectoryEntry& entry) {
        Name name;
        if (!parse_name(entry.name, &name) || name.pid_namespace != here)
            return true;
        if (!ledger::is_same_start(ledger::start_time_of(name.pid), name.start_time))
            unlinkat(directory, entry.name, 0);
        return true;
    });
    close(directory);
}

}  // namespace cuslice::stats
