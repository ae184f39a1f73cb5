#include "policy/ledger/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/key.h"
#include "policy/ledger/layout.h"

namespace cuslice::ledger {

void set_failure(LedgerError* why, const char* what, const char* path) {
    if (why) snprintf(why->text, sizeof why->text, "%s %s: %s", what, path, strerror(errno));
}

bool means_no_room(int error) { return error == ENOSPC || error == EDQUOT || error == EROFS; }

bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes]) {
    return static_cast<std::size_t>(snprintf(path, sizeof path, "%s/%u-%s.%u.ledger", folder, user, uuid, kVersion)) <
           sizeof path;
}

bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64]) {
    char end[24], again[kPathBytes];
    snprintf(end, sizeof end, ".%u.ledger", kVersion);
    char* dash = nullptr;
    const unsigned long number = strtoul(name, &dash, 10);
    if (dash == name || *dash != '-' || number > 0xfffffffful) return false;
    const std::size_t length = strlen(dash + 1), behind = strlen(end);
    if (length <= behind || length - behind >= sizeof uuid) return false;
    memcpy(uuid, dash + 1, length - behind);
    uuid[length - behind] = '\0';
    *user = static_cast<unsigned>(number);
    // One name for each: " 1000-…" and "01000-…" would be the same user once more.
    return ledger_path("", *user, uuid, again) && strcmp(again + 1, name) == 0;
}

unsigned folder_mode(const char* folder) { return folder == traits_of(Key::dir).default_value ? 01777 : 0700; }

bool make_folder(const char* folder, LedgerError* why) {
    struct stat info {};
    const auto there = [&] { return syscall(SYS_newfstatat, AT_FDCWD, folder, &info, AT_SYMLINK_NOFOLLOW) == 0; };
    // Looked for first, as it mostly is there: to make it the kernel locks the folder around it, even in vain, and the
    // processes of a job that start together would wait for each other.
    if (!there()) {
        if (mkdir(folder, folder_mode(folder)) == 0) {
            chmod(folder, folder_mode(folder));  // whatever the host's umask
            return true;
        }
        if (errno != EEXIST || !there()) {
            if (why) why->no_place = errno != EEXIST;
            set_failure(why, "can't make the folder", folder);
            return false;
        }
    }
    // Where everybody may replace what is there, nobody's file says anything.
    const bool anybody = (info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX);
    if (S_ISDIR(info.st_mode) && !anybody) return true;
    errno = S_ISDIR(info.st_mode) ? EPERM : ENOTDIR;
    set_failure(why, anybody ? "everybody may delete files in (chmod +t it)" : "can't use", folder);
    return false;
}

}  // namespace cuslice::ledger
