// SPDX-License-Identifier: Apache-2.0
#include "tests/stub/ruled.h"
#include "tests/allowed.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/soon.h"
#include "tests/stub/copy_readable.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

const std::string kUser = std::to_string(Ruled::kAlice);

// One that every user of the machine can run, which one of a version manager's is not.
std::string python_of_machine() { return fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : kPython; }

void append(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::app) << text; }

}  // namespace

Ruled::Ruled(const std::string& share) {
    fs::create_directories(at("etc/cuslice/rules.d"));
    fs::create_directory(at("alice"));
    append(at("etc/passwd"), "alice:x:" + kUser + ":" + kUser + ":Alice:" + at("alice") + ":/bin/sh\n");
    append(at("etc/group"), "alice:x:" + kUser + ":\n");
    write("etc/shadow", "root:*:19000:0:99999:7:::\nalice:*:19000:0:99999:7:::\n");
    for (const char* name : {"pam.d", "security", "login.defs"})  // of this machine's su
        if (fs::exists("/etc/" + std::string(name)))
            copy_readable("/etc/" + std::string(name), at("etc/") + name);
    write("etc/cuslice/cuslice.toml", "dir = \"" + at("ledger") + "\"\n[memory]\nheadroom = \"16MiB\"\n");
    if (!share.empty())
        write("etc/cuslice/rules.d/10.toml",
              "[[rule]]\nname = \"mine\"\nuser = \"alice\"\nlimit = \"1GiB\"\nshare = \"" + share + "\"\n" +
                  (share == "cgroup" ? "cgroup = \"/**\"\n" : ""));
    fs::create_directory(at("ledger"));
    write("probe", "#!/bin/sh\ncd " + at("alice") + "\nexport " + machine() + "\n\"$@\" " + kGuests +
                       "/guest dlopen=libcuda.so.1 < questions > opened 2> errors\n\"$@\" " + kGuests +
                       "/guest_linked linked < questions > linked 2>> errors\n: > over\n");
    fs::permissions(at("probe"), fs::perms(0755));
    for (const char* folder : {"etc/cuslice/rules.d", "alice"})
        fs::permissions(at(folder), fs::perms(0755));
    fs::permissions(at("ledger"), fs::perms(01777));
    fs::permissions(books(), fs::perms(0777));
    // The loader finds the driver as on a machine that has one.
    write("etc/ld.so.conf", kFakeFolder + "\ninclude /etc/ld.so.conf.d/*.conf\n");
}

bool Ruled::possible() const {
    if (!System::possible() || !can_be_other_users() || !can_let_others_in())
        return false;
    REQUIRE(chown(at("alice").c_str(), kAlice, kAlice) == 0);
    const Outcome made =
        run({"/sbin/ldconfig", "-X", "-C", at("etc/ld.so.cache"), "-f", at("etc/ld.so.conf")}, plain());
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
    return true;
}

// Properties of the machine that a fake GPU can learn from the environment alone.
std::string Ruled::machine() const { return "CUSLICE_FAKE=1xlaptop-2g CUSLICE_FAKE_DIR=" + books(); }

bool Ruled::has(const std::string& text) const {
    if (text.find("{python}") == text.npos || run(shell("{alice} {python} -c ''"), plain()).exit_code == 0)
        return true;
    return skip("there is no Python for every user"), false;
}

std::string Ruled::filled(std::string text) const {
    const std::string alice = "setpriv --reuid " + kUser + " --regid " + kUser + " --clear-groups --";
    std::string loader;
    for (const char* path : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"})
        if (fs::exists(path))
            loader = path;
    const std::pair<std::string, std::string> words[] = {
        {"{machine}", machine()}, {"{guest}", kGuests + "/guest"},   {"{fake}", kFakeFolder},
        {"{loader}", loader},     {"{clears}", CUSLICE_TEST_CLEARS}, {"{alice}", alice},
        {"{probe}", at("probe")}, {"{way}", CUSLICE_TEST_WAY},       {"{static}", CUSLICE_TEST_STATIC_WAY},
        {"{at}", at("alice")},    {"{library}", kPreloaded},         {"{python}", python_of_machine()},
        {"{user}", kUser}};
    for (const auto& [word, value] : words)
        for (size_t place; (place = text.find(word)) != std::string::npos;)
            text.replace(place, word.size(), value);
    return text;
}

Words Ruled::shell(const std::string& text) const { return command({"/bin/sh", "-c", filled(text)}); }

Words Ruled::guest() const { return shell("exec {alice} env {machine} " + kGuests + "/guest dlopen=libcuda.so.1"); }

void Ruled::write_questions(const std::string& lines) const {
    for (const char* name : {"opened", "linked", "errors", "over"})
        fs::remove(at("alice/") + name);
    write("alice/questions", lines);
}

Ruled::Answers Ruled::take_answers() const {
    if (!soon([&] { return fs::exists(at("alice/over")); }))
        return {};
    return {split_lines(read_text(at("alice/opened"))), split_lines(read_text(at("alice/linked"))),
            read_text(at("alice/errors"))};
}

}  // namespace cuslice::tests
