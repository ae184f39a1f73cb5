// SPDX-License-Identifier: Apache-2.0
// The rules of the system hold in every process, whatever became of its environment. Each case has an /etc of its own,
// in which the rules are and ld.so.preload names the library.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/allowed.h"
#include "tests/containers/tenant.h"
#include "tests/preload/device.h"

namespace cuslice::tests {
namespace {

/// A machine with an /etc of its own, on which nobody has more than 1 GiB; with `share` all of a user's processes
/// together.
struct Ruled {
    explicit Ruled(bool share = false) {
        // Another user is one of those who begin here.
        for (const Folder* one : {&folder, &books})
            REQUIRE(::chmod(one->path().c_str(), 0777) == 0);
        folder.write("rules.d/10.toml", "[[rule]]\nname = \"mine\"\nuser = \"" + std::to_string(::getuid()) +
                                            "\"\nlimit = \"1GiB\"\n" + (share ? "share = \"user\"\n" : "") +
                                            "[[rule]]\nname = \"rest\"\nlimit = \"1GiB\"\n");
        if (share)
            system = folder.write("system.toml", "dir = \"" + books.path() + "/shared\"\n");
        REQUIRE(::chmod((folder.path() + "/rules.d").c_str(), 0755) == 0);
        preload = folder.write("ld.so.preload", preload_list() + "\n");
        folder.write("cuslice/cuslice.toml", "[memory]\nlimit = \"1900MiB\"\n");
    }
    /// "%" in a setting stands for a folder of the user's, with a file in it that asks for more.
    Words command(const Words& way, Words settings, const Words& program = Guest::route("linked"),
                  bool preloaded = true) const {
        for (std::string& setting : settings)
            if (const size_t at = setting.find('%'); at != std::string::npos)
                setting.replace(at, 1, folder.path());
        Words words{"/usr/bin/env", "bwrap", "--die-with-parent", "--dev-bind", "/",     "/",
                    "--tmpfs",      "/etc",  "--perms",           "0755",       "--dir", "/etc/cuslice"};
        // The rules have to be root's, and whoever makes the container is root in it.
        if (::geteuid() != 0)
            words = joined(words, {"--unshare-user", "--uid", "0", "--gid", "0"});
        for (const char* file : {"/etc/passwd", "/etc/group", "/etc/ld.so.cache", "/etc/alternatives"})
            words = joined(words, {"--ro-bind-try", file, file});
        words = joined(words, {"--ro-bind", folder.path() + "/rules.d", "/etc/cuslice/rules.d"});
        if (!system.empty())
            words = joined(words, {"--ro-bind", system, "/etc/cuslice/cuslice.toml"});
        if (preloaded)
            words = joined(words, {"--ro-bind", preload, "/etc/ld.so.preload"});
        words.push_back("--");
        return joined(joined(joined(joined(words, way), fake()), settings), program);
    }
    Words fake() const {
        return {"/usr/bin/env", "CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(),
                "CUSLICE_HEADROOM=16MiB"};
    }

    Folder folder, books;
    std::string preload, system;
};

bool possible(const Words& words) {
    const Outcome outcome = run(words, plain());
    if (outcome.exit_code != 0)
        skip("this machine doesn't let tests do that: " + outcome.err);
    return outcome.exit_code == 0;
}

void check_limit(const Words& words, const Folder& books) {
    Guest guest(words, plain());
    const int started = guest.code("init");
    INFO((guest.complaints().empty() ? std::string() : guest.complaints()[0]));
    REQUIRE(started == kSuccess);
    enter_device(guest);
    const uint64_t free = guest.number("info");
    CHECK(free + 16 * kMiB + held_by_all(books.path()) == kGiB);
    CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(peak_of_all(books.path()) <= kGiB);
    CHECK(peak_of_all(books.path()) > kGiB - 32 * kMiB);
    CHECK(guest.code("freeall") == kSuccess);
    CHECK(guest.number("info") == free);
    CHECK(guest.finish() == 0);
}

/// True if this machine lets tests have processes share a slice by a rule.
bool can_share(const Ruled& ruled) {
    if (!kSanitizer.empty())
        skip("a sanitizer's runtime is not preloaded by a file");
    // In a user namespace nobody can tell whose the processes are.
    if (::geteuid() != 0)
        skip("without root a case's /etc takes a user namespace, in which no slice is shared");
    return kSanitizer.empty() && ::geteuid() == 0 && possible(ruled.command({"/bin/true"}, {}));
}

bool says(Guest& guest, const std::string& what) {
    for (const std::string& line : guest.complaints()) {
        UNSCOPED_INFO(line);
        if (line.find(what) != std::string::npos)
            return true;
    }
    return false;
}

/// True if /proc has the guest's files in this folder by their names here. In a chroot the names of files in other
/// mount namespaces begin with what lies outside it.
bool can_see_files_in(const std::string& folder, const Guest& guest) {
    for (const int pid : descendants(guest.child())) {
        for (const auto& file : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
            std::error_code closed;
            if (std::filesystem::read_symlink(file, closed).string().starts_with(folder))
                return true;
        }
    }
    skip("in a chroot the files of containers have other names in /proc");
    return false;
}

const std::string kSome = "alloc most " + bytes(320 * kMiB);

/// That a program gets no more than what another one, which has taken some of it, leaves of their slice.
void check_shared(const Ruled& ruled, const Words& words) {
    Guest first(ruled.command({}, {}), plain());
    REQUIRE(try_device(first) == kSuccess);
    REQUIRE(first.code(kSome) == kSuccess);
    Guest second(words, plain());
    const int started = try_device(second);
    INFO((second.complaints().empty() ? std::string() : second.complaints()[0]));
    REQUIRE(started == kSuccess);
    CHECK(second.number("info") < 320 * kMiB);
    CHECK(second.code(kSome) == kOutOfMemory);
    CHECK(second.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(peak_of_all(ruled.books.path()) <= kGiB);
    REQUIRE(second.code("freeall") == kSuccess);
    REQUIRE(first.code("freeall") == kSuccess);
    CHECK(second.number("info") > 320 * kMiB);
    CHECK(second.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(held_by_all(ruled.books.path()) <= kGiB);
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
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime is not preloaded by a file");
    if (way.size() > 1 && way[0].empty())
        return skip("there is no Python");
    const bool other_user = way.size() > 1 && way[1] == "--reuid";
    if (other_user && (!can_be_other_users() || !can_let_others_in()))
        return;
    if (!possible(ruled.command(joined(way, {"/bin/true"}), {})))
        return;
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
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime is not preloaded by a file");
    if (!possible(ruled.command({"/bin/true"}, {})))
        return;
    CAPTURE(settings);
    check_limit(ruled.command({}, settings), ruled.books);
}

TEST_CASE("a program may have less than its rule") {
    const Ruled ruled;
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime is not preloaded by a file");
    if (!possible(ruled.command({"/bin/true"}, {})))
        return;
    Guest guest(ruled.command({}, {"CUSLICE_LIMIT=512MiB"}), plain());
    use_device(guest);
    CHECK(guest.number("info") + 16 * kMiB + held_by_all(ruled.books.path()) == 512 * kMiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("processes of one user share the slice of a rule, and have it back after a kill") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    Guest first(ruled.command({}, {}), plain()), second(ruled.command({}, {}), plain());
    REQUIRE(try_device(first) == kSuccess);
    REQUIRE(try_device(second) == kSuccess);
    REQUIRE(first.code(kSome) == kSuccess);
    CHECK(second.number("info") + 16 * kMiB + held_by_all(ruled.books.path()) == kGiB);
    CHECK(second.code(kSome) == kOutOfMemory);
    CHECK(says(second, "of the 1024.0 MiB limit of rule mine are in use"));
    CHECK(says(second, "The limit is from rule mine (/etc/cuslice/rules.d/10.toml:4:1)"));
    CHECK(peak_of_all(ruled.books.path()) <= kGiB);
    const Outcome ps = run(ruled.command({}, {}, {kLaunch, "ps", "--json"}), plain());
    INFO(ps.out + ps.err);
    REQUIRE(ps.exit_code == 0);
    const auto rows = Json::parse(ps.out)["processes"];
    REQUIRE(rows.size() == 2);
    for (const auto& row : rows) {
        CHECK(row["kind"] == "rule");
        CHECK(row["name"] == "mine");
        CHECK(row["limit"] == kGiB);
    }
    // Its limit is the system's to set.
    for (const std::string kind : {"--job", "--group"}) {
        const Outcome set = run(ruled.command({}, {}, {kLaunch, "set", kind, "mine", "--limit", "2GiB"}), plain());
        CHECK(set.exit_code != 0);
    }
    CHECK(second.code(kSome) == kOutOfMemory);
    REQUIRE(::kill(first.pid(), SIGKILL) == 0);
    CHECK(first.finish() == 128 + SIGKILL);
    CHECK(second.code(kSome) == kSuccess);
    CHECK(second.finish() == 0);
}

TEST_CASE("no program has a second slice of a rule, whatever becomes of its environment") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    const Words way =
        GENERATE(Words{}, Words{"/usr/bin/env", "-i"}, Words{"/usr/bin/setsid", "--wait"},
                 Words{"/bin/bash", "-c", "exec -c \"$@\"", "-"}, Words{"/usr/bin/unshare", "--ipc", "--uts", "--net"},
                 Words{"/usr/bin/unshare", "--pid", "--fork"}, Words{"/usr/bin/setpriv", "--clear-groups"});
    if (!possible(ruled.command(joined(way, {"/bin/true"}), {})))
        return;
    CAPTURE(way);
    check_shared(ruled, ruled.command(way, {}));
}

TEST_CASE("the launcher's programs share a rule's slice with those that it didn't start") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    const Words fake = ruled.fake(), launch{kLaunch, "run", "--"};
    const Words run = GENERATE_COPY(
        Words(launch), joined(launch, launch), joined(joined(launch, launch), launch),
        Words{kLaunch, "run", "--per-process", "--"}, Words{kLaunch, "run", "--limit", "1900MiB", "--"},
        Words{kLaunch, "run", "--group", "other", "--group-limit", "1900MiB", "--"},
        joined(joined(launch, launch), {kLaunch, "run", "--group", "other", "--group-limit", "1900MiB", "--"}));
    CAPTURE(run);
    check_shared(ruled, ruled.command(joined(fake, run), {}, Guest::route("linked"), false));
}

TEST_CASE("the launcher's jobs have no more of a GPU reserved together than their rule lets them take") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    const Words asks{kLaunch, "run", "--limit", "900MiB", "--"};
    const auto job = [&] { return ruled.command(joined(ruled.fake(), asks), {}, Guest::route("linked"), false); };
    Guest first(job(), plain()), second(job(), plain()), third(job(), plain());
    // Together more than the GPU has; the rule's is half of it.
    for (Guest* guest : {&first, &second, &third})
        REQUIRE(try_device(*guest) == kSuccess);
    REQUIRE(first.code("alloc some " + bytes(64 * kMiB)) == kSuccess);
    CHECK(third.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(peak_of_all(ruled.books.path()) <= kGiB);
    const Outcome ps = run(ruled.command({}, {}, {kLaunch, "ps", "--json"}), plain());
    REQUIRE(ps.exit_code == 0);
    unsigned in_rule = 0;
    for (const auto& row : Json::parse(ps.out)["processes"])
        in_rule += row["kind"] == "rule";
    CHECK(in_rule == 3);
    CHECK(third.finish() == 0);
    CHECK(second.finish() == 0);
    CHECK(first.finish() == 0);
}

TEST_CASE("no program has a second slice of a rule, whatever a user sets") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    const Words settings = GENERATE(
        Words{"CUSLICE_LIMIT=1900MiB"}, Words{"CUSLICE_GROUP=other"},
        Words{"CUSLICE_GROUP=other", "CUSLICE_GROUP_LIMIT=1900MiB"}, Words{"CUSLICE_PER_PROCESS=yes"},
        Words{"CUSLICE_SETTINGS=1"}, Words{"CUSLICE_JOB=mine"}, Words{"CUSLICE_SPLIT=1"}, Words{"CUSLICE_SPLIT=2"},
        Words{"CUSLICE_ALLOCATOR=growth"}, Words{"CUSLICE_SETTINGS=1;system-file.0 dir * %25 x:1:1"});
    CAPTURE(settings);
    check_shared(ruled, ruled.command({}, settings));
}

TEST_CASE("no program has a second slice of a rule in place of a ledger that was removed") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    Guest first(ruled.command({}, {}), plain());
    REQUIRE(try_device(first) == kSuccess);
    REQUIRE(first.code(kSome) == kSuccess);
    if (!can_see_files_in(ruled.books.path(), first))
        return;
    REQUIRE(std::filesystem::remove_all(ruled.books.path() + "/shared") != 0);
    Guest second(ruled.command({}, {}), plain());
    REQUIRE(try_device(second) == kSuccess);
    CHECK(second.code(kSome) == kOutOfMemory);
    CHECK(second.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(held_by_all(ruled.books.path()) <= kGiB);
    first.let_change("free", "it may learn of the new file now, and of what others hold in it");
    CHECK(first.code("alloc more " + bytes(64 * kMiB)) == kOutOfMemory);
}

TEST_CASE("where it can't be told whose slice it is, or it can't be shared, nothing is granted") {
    const Ruled ruled(true);
    if (!can_share(ruled))
        return;
    Words way, settings;
    std::string why;
    SECTION("another folder") {
        settings = {"CUSLICE_DIR=" + ruled.books.path() + "/mine"};
        why = "rule mine shares one slice, in " + ruled.books.path() + "/shared";
    }
    SECTION("a user namespace") {
        way = {"/usr/bin/unshare", "--user", "--map-root-user"};
        if (!possible(ruled.command(joined(way, {"/bin/true"}), {})))
            return;
        why = "rule mine shares one slice, and the owner of this process can't be told in a user namespace";
    }
    SECTION("a folder that can't be made") {
        ruled.books.write("shared", "");
        why = "rule mine: the limit can't be shared with other processes, so every allocation fails";
    }
    Guest guest(ruled.command(way, settings), plain());
    CHECK(try_device(guest) != kSuccess);
    CHECK(says(guest, why));
}

TEST_CASE("dmem.max of cgroup v2 holds in a program, and its log says where the limit is from") {
    if (read_text("/proc/self/cgroup").find("0::/") == std::string::npos)
        return skip("there is no cgroup v2 here");
    const Folder folder, books;
    folder.write("cgroup.controllers", "cpu memory dmem\n");
    folder.write("dmem.max", "drm/0000:04:00.0/vram0 1073741824\n");
    const Words container{"/usr/bin/env",
                          "bwrap",
                          "--die-with-parent",
                          "--dev-bind",
                          "/",
                          "/",
                          "--ro-bind",
                          folder.path(),
                          "/sys/fs/cgroup",
                          "--",
                          "/usr/bin/env",
                          "CUSLICE_FAKE=1xlaptop-2g",
                          "CUSLICE_FAKE_DIR=" + books.path(),
                          "CUSLICE_HEADROOM=16MiB"};
    if (!possible(joined(container, {"/bin/true"})))
        return;
    const Words preloaded{"LD_PRELOAD=" + preload_list()};
    check_limit(joined(joined(container, preloaded), Guest::route("linked")), books);
    Guest guest(joined(joined(joined(container, preloaded), {"CUSLICE_LOG=info"}), Guest::route("linked")), plain());
    retain_device(guest);
    CHECK(guest.finish() == 0);
    const Words said = guest.complaints();
    CHECK(std::any_of(said.begin(), said.end(), [](const std::string& line) {
        return line.ends_with(", limit 1024.0 MiB from dmem.max of cgroup /");
    }));
}

}  // namespace cuslice::tests
