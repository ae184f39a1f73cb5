// SPDX-License-Identifier: Apache-2.0
// Programs with more rights than their user that are linked to the driver, and a user who wants the whole GPU of them,
// or their rights.
#include <unistd.h>

#include <filesystem>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/stub/system.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

/// How a program comes to have more rights than its user.
struct Rights {
    const char* name;
    const char* given;  // what gives it to a file
};
const Rights kUser{"set-user-ID", "chmod 4755"};
const Rights kGroup{"set-group-ID", "chmod 2755"};
const Rights kCapabilities{"file capabilities", "setcap cap_sys_nice+ep"};

/// A machine on which {program}, linked to the driver, has more rights than whoever starts it.
class Privileged : public System {
  public:
    explicit Privileged(const Rights& rights) : rights_(rights) {
        fs::copy_file(std::string(CUSLICE_TEST_LINKED) + "lazy", at("program"));
        fs::copy_file(CUSLICE_TEST_RACE, at("race"));
        fs::create_directory(at("home"));
        fs::permissions(at("home"), fs::perms(01777));
        fs::permissions(books_.path(), fs::perms(01777));
        // For such a program the loader looks for the driver in its cache alone.
        write("etc/ld.so.conf", kFakeFolder + "\n");
    }

    /// A shell's text by root, in which {user} runs what follows as somebody without rights, in a folder of theirs.
    Outcome run_by_root(const std::string& text, const Words& more = {}) const {
        const std::string before =
            "/sbin/ldconfig && " + std::string(rights_.given) + " {program} || exit 3; cd {home}; ";
        return run(command({"/bin/sh", "-c", filled(before + text)}),
                   raw("1xlaptop-2g", books_.path(), joined({"CUSLICE_LIMIT=1024MiB"}, more)));
    }
    std::string filled(std::string text) const {
        const std::pair<std::string, std::string> words[] = {
            {"{user}", "setpriv --reuid 60001 --regid 60001 --clear-groups"},
            {"{program}", at("program")},
            {"{race}", at("race")},
            {"{home}", at("home")}};
        for (const auto& [word, value] : words)
            for (size_t place; (place = text.find(word)) != text.npos;)
                text.replace(place, word.size(), value);
        return text;
    }
    bool possible() const {
        if (!System::possible() || !can_be_other_users() || !can_let_others_in())
            return false;
        if (run_by_root("exit 0").exit_code == 0)
            return true;
        return skip("rights can't be given to files here"), false;
    }

  private:
    Rights rights_;
    Folder books_;
};

}  // namespace

TEST_CASE("a program with more rights than its user is ended where it is linked to the driver") {
    const Rights rights = GENERATE(kUser, kGroup, kCapabilities);
    const std::string way = GENERATE(
        as<std::string>{}, "exec {user} {program}", "ln -s {program} name; exec {user} ./name",
        "ln {program} name; exec {user} ./name",
        "printf '#!{program}\\n' > script; chmod 755 script; exec {user} ./script", "exec {user} env -i {program}",
        "exec {user} env CUDA_VISIBLE_DEVICES=0 {program}", "exec {user} env CUDA_VISIBLE_DEVICES= {program}",
        "exec {user} env LD_PRELOAD=libc.so.6 {program}", "exec {user} sh -c 'CUSLICE_STUB=\"$$ n x\" exec {program}'",
        "exec {user} sh -c 'CUSLICE_STUB=\"$$ l x\" exec {program}'",
        "exec {user} sh -c 'CUSLICE_STUB=\"$$ n x/y\" CUDA_VISIBLE_DEVICES= exec {program}'",
        "mount -t tmpfs none /proc && exec {user} {program}");
    CAPTURE(rights.name, way);
    const Privileged system(rights);
    if (!system.possible())
        return;
    const Outcome outcome = system.run_by_root(way);
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 127);
    CHECK(outcome.out.empty());
    const std::string line = "cuslice: " + std::string(kPreloaded) +
                             " comes into no program that has more rights than its user, so this program, which is "
                             "linked to CUDA, is ended\n";
    CHECK(outcome.err.ends_with(line));
}

TEST_CASE("who exchanges what a name leads to gets no rights of a program that is linked to the driver") {
    const Rights rights = GENERATE(kUser, kGroup);
    const std::string way = GENERATE(as<std::string>{}, "{user} {race} {program} 500",
                                     "{user} env CUSLICE_STUB=1 timeout 60 {race} {program} 500",
                                     "ln {program} hard && {user} {race} {home}/hard 500");
    CAPTURE(rights.name, way);
    const Privileged system(rights);
    if (!system.possible())
        return;
    const Outcome outcome = system.run_by_root(way);
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
}

TEST_CASE("a program with more rights than its user is ended where the library is broken too") {
    const Privileged system(kUser);
    if (!system.possible())
        return;
    system.put_library(kPreloaded);
    fs::resize_file(system.library(), 100);
    const Outcome outcome = system.run_by_root("exec {user} {program}");
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 127);
    CHECK(outcome.out.empty());
}

TEST_CASE("a program that root starts has no more rights than root, and its slice") {
    const Privileged system(kUser);
    if (!system.possible())
        return;
    const Outcome outcome = system.run_by_root("exec {program}");
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("main 0 1024\n") != std::string::npos);
}

}  // namespace cuslice::tests
