// The rules of the system hold in every process, whatever became of its environment. Each case has an /etc of its own,
// in which the rules are and ld.so.preload names the library.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/containers/tenant.h"

namespace cuslice::tests {
namespace {

/// A machine with an /etc of its own, on which nobody has more than 1 GiB.
struct Ruled {
    Ruled() {
        // Another user is one of those who begin here.
        for (const Folder* one : {&folder, &books}) REQUIRE(::chmod(one->path().c_str(), 0777) == 0);
        folder.write("rules.d/10.toml", "[[rule]]\nname = \"mine\"\nuser = \"" + std::to_string(::getuid()) +
                                            "\"\nlimit = \"1GiB\"\n[[rule]]\nname = \"rest\"\nlimit = \"1GiB\"\n");
        REQUIRE(::chmod((folder.path() + "/rules.d").c_str(), 0755) == 0);
        preload = folder.write("ld.so.preload", preload_list() + "\n");
        folder.write("cuslice/cuslice.toml", "[memory]\nlimit = \"1900MiB\"\n");
    }
    /// "%" in a setting stands for a folder of the user's, with a file in it that asks for more.
    Words command(const Words& way, Words settings) const {
        for (std::string& setting : settings)
            if (const std::size_t at = setting.find('%'); at != std::string::npos)
                setting.replace(at, 1, folder.path());
        Words words{"/usr/bin/env", "bwrap", "--die-with-parent", "--dev-bind", "/",     "/",
                    "--tmpfs",      "/etc",  "--perms",           "0755",       "--dir", "/etc/cuslice"};
        // Whoever makes it is root in it, whose the rules have to be.
        if (::geteuid() != 0) words = joined(words, {"--unshare-user", "--uid", "0", "--gid", "0"});
        for (const char* file : {"/etc/passwd", "/etc/group", "/etc/ld.so.cache", "/etc/alternatives"})
            words = joined(words, {"--ro-bind-try", file, file});
        words = joined(words, {"--ro-bind", folder.path() + "/rules.d", "/etc/cuslice/rules.d"});
        words = joined(words, {"--ro-bind", preload, "/etc/ld.so.preload", "--"});
        const Words fake{"/usr/bin/env", "CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(),
                         "CUSLICE_HEADROOM=16MiB"};
        return joined(joined(joined(joined(words, way), fake), settings), Guest::route("linked"));
    }

    Folder folder, books;
    std::string preload;
};

bool possible(const Words& words) {
    const Outcome outcome = run(words, plain());
    if (outcome.exit_code != 0) skip("this machine doesn't let tests do that: " + outcome.err);
    return outcome.exit_code == 0;
}

void check_limit(const Words& words, const Folder& books) {
    Guest guest(words, plain());
    const int started = guest.code("init");
    INFO((guest.complaints().empty() ? std::string() : guest.complaints()[0]));
    REQUIRE(started == 0);
    REQUIRE(guest.code("retain 0") == 0);
    REQUIRE(guest.code("current 0") == 0);
    const std::uint64_t free = guest.number("info");
    CHECK(free + 16 * kMiB + held_by_all(books.path()) == kGiB);
    CHECK(guest.code("fill " + bytes(kMiB)) == 2);
    CHECK(peak_of_all(books.path()) <= kGiB);
    CHECK(peak_of_all(books.path()) > kGiB - 32 * kMiB);
    CHECK(guest.code("freeall") == 0);
    CHECK(guest.number("info") == free);
    CHECK(guest.finish() == 0);
}

}  // namespace

TEST_CASE("a rule holds whichever way a program sheds its environment") {
    const Ruled ruled;
    const std::string python = CUSLICE_TEST_PYTHON;
    const Words way = GENERATE_COPY(
        Words{}, Words{"/usr/bin/env", "-i"}, Words{"/usr/bin/env", "-u", "LD_PRELOAD", "-u", "CUSLICE_LIMIT"},
        Words{"/usr/bin/setsid", "--wait"}, Words{"/usr/bin/nohup"}, Words{"/bin/bash", "-c", "exec -c \"$@\"", "-"},
        Words{"/bin/sh", "-c", "unset LD_PRELOAD; \"$@\"; exit $?", "-"},
        Words{python, "-c", "import os, sys; os.environ.clear(); os.execv(sys.argv[1], sys.argv[1:])"},
        Words{python, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], env={}).returncode)"},
        Words{"/usr/bin/unshare", "--user"}, Words{"/usr/bin/unshare", "--user", "--map-root-user"},
        Words{"/usr/bin/unshare", "--user", "--map-root-user", "/usr/bin/unshare", "--user", "--cgroup"},
        Words{"/usr/bin/unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"},
        Words{"/usr/bin/unshare", "--user", "--map-root-user", "--cgroup", "--ipc", "--uts", "--net", "--mount"},
        Words{"/usr/bin/setpriv", "--reuid", "1001", "--regid", "1001", "--clear-groups"},
        Words{"/usr/bin/setpriv", "--clear-groups"});
    if (!kSanitizer.empty()) return skip("a sanitizer's runtime is not preloaded by a file");
    if (way.size() > 1 && way[0].empty()) return skip("there is no Python");
    if (!possible(ruled.command(joined(way, {"/bin/true"}), {}))) return;
    CAPTURE(way);
    check_limit(ruled.command(way, {}), ruled.books);
}

TEST_CASE("a rule holds whatever a user sets") {
    const Ruled ruled;
    const Words settings = GENERATE(
        Words{"CUSLICE_LIMIT=1900MiB"}, Words{"CUSLICE_LIMIT=1900MiB+context"}, Words{"CUSLICE_FRACTION=1"},
        Words{"CUSLICE_SETTINGS=1"}, Words{"CUSLICE_SETTINGS=1;flag.0 limit * 1900MiB --limit"},
        Words{"CUSLICE_SETTINGS=1;system-file.0 ceiling.limit 0 1900MiB /etc/cuslice/cuslice.toml:1:1"},
        Words{"CUSLICE_CONFIG=%/cuslice/cuslice.toml"}, Words{"XDG_CONFIG_HOME=%"},
        Words{"CUSLICE_PER_PROCESS=yes", "CUSLICE_LIMIT=1900MiB"}, Words{"CUSLICE_SPLIT=1", "CUSLICE_LIMIT=1900MiB"});
    if (!kSanitizer.empty()) return skip("a sanitizer's runtime is not preloaded by a file");
    if (!possible(ruled.command({"/bin/true"}, {}))) return;
    CAPTURE(settings);
    check_limit(ruled.command({}, settings), ruled.books);
}

TEST_CASE("a program may have less than its rule") {
    const Ruled ruled;
    if (!kSanitizer.empty()) return skip("a sanitizer's runtime is not preloaded by a file");
    if (!possible(ruled.command({"/bin/true"}, {}))) return;
    Guest guest(ruled.command({}, {"CUSLICE_LIMIT=512MiB"}), plain());
    REQUIRE(guest.code("init") == 0);
    REQUIRE(guest.code("retain 0") == 0);
    REQUIRE(guest.code("current 0") == 0);
    CHECK(guest.number("info") + 16 * kMiB + held_by_all(ruled.books.path()) == 512 * kMiB);
    CHECK(guest.finish() == 0);
}

}  // namespace cuslice::tests
