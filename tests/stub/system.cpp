// SPDX-License-Identifier: Apache-2.0
#include "tests/stub/system.h"
#include "tests/allowed.h"

#include <sched.h>
#include <unistd.h>

#include <filesystem>

#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {

namespace fs = std::filesystem;

System::System() {
    fs::create_directories(at("etc/cuslice"));
    fs::create_directory(at("system"));
    for (const char* file : {"ld.so.cache", "passwd", "group", "nsswitch.conf"})
        if (fs::exists("/etc/" + std::string(file)))
            fs::copy_file("/etc/" + std::string(file), at("etc/") + file);
    fs::copy_file(CUSLICE_TEST_STUB, stub());
    fs::create_directory_symlink(fs::path(kPreloaded).parent_path(), at("system/library"));
    folder_.write("etc/ld.so.preload", stub() + "\n");
    for (const char* folder : {".", "etc", "etc/cuslice", "system"})
        fs::permissions(at(folder), fs::perms(0755));  // for programs of other users
}

Words System::command(const Words& program) const {
    const std::string script = "mount --bind " + at("etc") + " /etc && exec \"$@\"";
    Words words{"/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, "sh"};
    if (geteuid() != 0)
        words.insert(words.begin() + 1, {"--user", "--map-root-user"});
    return joined(words, program);
}

bool System::possible() const {
    if (!kSanitizer.empty()) {
        skip("the stub is built without the sanitizer, whose runtime stands before dlopen");
        return false;
    }
    return can_unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS);
}

void System::put_library(const std::string& file) const {
    fs::remove(at("system/library"));
    fs::create_directory(at("system/library"));
    fs::copy_file(file, library());
}

}  // namespace cuslice::tests
