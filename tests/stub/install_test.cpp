// SPDX-License-Identifier: Apache-2.0
// cuslice install --system and out again, in a root that has little more than /bin/true.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

constexpr char kStub[] = "/usr/lib/cuslice-system/libcuslice-preload.so";

// A root with an installation in /opt/cuslice, whose launcher is started from outside.
class Root {
  public:
    Root() {
        const fs::path libraries = fs::path(kPreloaded).parent_path();
        for (const char* folder : {"etc", "bin", "opt/cuslice/bin", "opt/cuslice/lib/cuslice"})
            fs::create_directories(at(folder));
        copy("/bin/true");
        for (const std::string& word : split_words(run({"/usr/bin/ldd", "/bin/true"}, plain()).out))
            if (word.starts_with("/"))
                copy(word);
        fs::copy_file(kLaunch, at("opt/cuslice/bin/cuslice"));
        for (const char* name : {"libcuslice.so", "libcuslice-preload.so"})
            fs::copy_file(libraries / name, at("opt/cuslice/lib/cuslice/") + name);
    }

    std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
    std::string list() const { return at("etc/ld.so.preload"); }
    Outcome cuslice(const Words& words, const Words& before = {}) const {
        const Words user = geteuid() == 0 ? Words{} : Words{"/usr/bin/unshare", "--user", "--map-root-user"};
        return run(joined(joined(joined(before, user), {at("opt/cuslice/bin/cuslice")}),
                          joined(words, {"--root", folder_.path()})),
                   plain());
    }
    // Runs the root's own /bin/true, with the list as it is.
    Outcome true_inside() const {
        Words words{"/usr/sbin/chroot", folder_.path(), "/bin/true"};
        if (geteuid() != 0)
            words = joined({"/usr/bin/unshare", "--user", "--map-root-user"}, words);
        return run(words, plain());
    }
    bool possible() const {
        if (!kSanitizer.empty())
            return skip("the sanitizer's runtime is not in the root"), false;
        if (true_inside().exit_code == 0)
            return true;
        return skip("no other root can be used here"), false;
    }
    Words files() const {
        Words all;
        for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
            all.push_back(entry.path().string() + (entry.is_regular_file() ? "=" + read_text(entry.path()) : ""));
        std::sort(all.begin(), all.end());
        return all;
    }
    void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }

  private:
    void copy(const std::string& file) const {
        fs::create_directories(fs::path(at(file.substr(1))).parent_path());
        fs::copy_file(file, at(file.substr(1)));
    }

    Folder folder_;
};

}  // namespace

TEST_CASE("install --system puts the stub into a root, and uninstall leaves it as it was") {
    const std::string before = GENERATE("", "# ours\n/opt/other.so\n");
    const Root root;
    if (!root.possible())
        return;
    fs::create_directories(root.at("usr/lib"));
    // The loader says so of a library that isn't there, and that is no reason to leave the stub out.
    if (!before.empty())
        fs::copy_file(kGuests + "/libguest_clock.so", root.at("opt/other.so"));
    if (!before.empty())
        root.write("etc/ld.so.preload", before);
    const Words files = root.files();

    for (int i = 0; i < 2; ++i) {  // again is an update
        const Outcome outcome = root.cuslice({"install", "--system"});
        CAPTURE(outcome.err);
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.err.empty());
        CHECK(outcome.out ==
              root.list() + " names " + kStub + ", which loads /opt/cuslice/lib/cuslice/libcuslice.so\n");
        CHECK(read_text(root.list()) == before + kStub + "\n");
    }
    CHECK(fs::read_symlink(root.at("usr/lib/cuslice-system/library")) == "/opt/cuslice/lib/cuslice");
    CHECK(read_text(root.at(kStub + 1)) == read_text(root.at("opt/cuslice/lib/cuslice/libcuslice-preload.so")));
    CHECK(fs::status(root.at(kStub + 1)).permissions() == fs::perms(0755));
    CHECK(root.true_inside().err.empty());

    const Outcome outcome = root.cuslice({"uninstall", "--system"});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out == root.list() + " no longer names " + kStub + "\n");
    CHECK(root.files() == files);
    CHECK(root.cuslice({"uninstall", "--system"}).out == root.list() + " does not name " + kStub + "\n");
}

TEST_CASE("a stub that the loader can't take is not installed, and all is as it was") {
    const std::string what = GENERATE("a text", "no library", "no true", "a list that is a link", "broken list",
                                      "no place for the list", "no program runs with the list");
    CAPTURE(what);
    const Root root;
    if (!root.possible())
        return;
    fs::create_directories(root.at("usr/lib"));
    const std::string libraries = "opt/cuslice/lib/cuslice/";
    if (what == "a text")
        fs::remove(root.at(libraries + "libcuslice-preload.so"));
    if (what == "a text")
        root.write(libraries + "libcuslice-preload.so", "text");
    if (what == "no library")
        fs::remove(root.at(libraries + "libcuslice.so"));
    if (what == "no true")
        fs::remove(root.at("bin/true"));
    if (what == "a list that is a link")
        fs::create_symlink("other", root.list());
    if (what == "broken list")
        root.write("etc/ld.so.preload", "/not/there.so\n");
    if (what == "no place for the list")
        fs::create_directory(root.at("etc/ld.so.preload.cuslice-new"));
    if (what == "no program runs with the list") {
        fs::remove(root.at("bin/true"));
        fs::copy_file(CUSLICE_TEST_PICKY_TRUE, root.at("bin/true"));
    }
    const Words files = root.files();
    const Outcome outcome = root.cuslice({"install", "--system"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == (what == "no library" ? 78 : 69));
    CHECK(split_lines(outcome.err).size() == 1);
    CHECK(outcome.err.starts_with("cuslice: "));
    CHECK(outcome.out.empty());
    CHECK(root.files() == files);
}

TEST_CASE("a broken update leaves the stub that is there") {
    const Root root;
    if (!root.possible())
        return;
    REQUIRE(root.cuslice({"install", "--system"}).exit_code == 0);
    const std::string stub = read_text(root.at(kStub + 1));
    fs::remove(root.at("opt/cuslice/lib/cuslice/libcuslice-preload.so"));
    root.write("opt/cuslice/lib/cuslice/libcuslice-preload.so", "text");
    const Words files = root.files();
    CHECK(root.cuslice({"install", "--system"}).exit_code == 69);
    CHECK(root.files() == files);
    CHECK(read_text(root.at(kStub + 1)) == stub);
    CHECK(root.true_inside().err.empty());
}

TEST_CASE("an image whose links lead out of it is left alone, and so is what they lead to") {
    const std::string link = GENERATE("etc", "usr", "usr/lib", "usr/lib/cuslice-system");
    const bool within = GENERATE(false, true);
    CAPTURE(link, within);
    const Root root;
    if (!root.possible())
        return;
    const Folder outside;
    const std::string real = within ? root.at("real") : outside.path();
    fs::create_directories(real);
    fs::remove_all(root.at(link));
    fs::create_directories(fs::path(root.at(link)).parent_path());
    // One that stays within the image is the image's own matter.
    fs::create_symlink(within ? fs::relative(real, fs::path(root.at(link)).parent_path()) : fs::path(real),
                       root.at(link));
    const Words files = root.files();

    const Outcome outcome = root.cuslice({"install", "--system"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == (within ? 0 : 69));
    CHECK(fs::is_empty(outside.path()));
    if (within)
        return;
    CHECK(outcome.err.find("which is not in ") != std::string::npos);
    CHECK((root.files() == files));  // their contents are long
    const std::string stub = outside.write("libcuslice-preload.so", "the machine's own");
    CHECK(root.cuslice({"uninstall", "--system"}).exit_code == 69);
    CHECK(read_text(stub) == "the machine's own");
}

TEST_CASE("the stub's folder is not for others to write to, whatever the umask") {
    const Root root;
    if (!root.possible())
        return;
    const Outcome outcome = root.cuslice({"install", "--system"}, {"/bin/sh", "-c", "umask 0; exec \"$@\"", "sh"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(fs::status(root.at("usr/lib/cuslice-system")).permissions() == fs::perms(0755));
    CHECK(fs::status(root.at(kStub + 1)).permissions() == fs::perms(0755));
}

TEST_CASE("an installation that others than root can change is not taken") {
    struct Change {
        const char* name;
        const char* text;  // of a shell, in the root
        const char* file;  // that is named
        bool others;       // another user is needed
    };
    const Change change = GENERATE(
        Change{"a folder of another's on the way", "chown 60001 opt", "/opt", true},
        Change{"the installation in a home",
               "mkdir home; mv opt/cuslice home/; chown -R 60001 home; ln -s ../home/cuslice opt/cuslice", "/home",
               true},
        Change{"the folder of another's", "chown 60001 opt/cuslice/lib/cuslice", "/opt/cuslice/lib/cuslice", true},
        Change{"the library of another's", "chown 60001 opt/cuslice/lib/cuslice/libcuslice.so",
               "/opt/cuslice/lib/cuslice/libcuslice.so", true},
        Change{"the stub of another's", "chown 60001 opt/cuslice/lib/cuslice/libcuslice-preload.so",
               "/opt/cuslice/lib/cuslice/libcuslice-preload.so", true},
        Change{"a group of others", "chgrp 60001 opt/cuslice; chmod 775 opt/cuslice", "/opt/cuslice", true},
        Change{"a link of another's",
               "mkdir -p usr real/cuslice-system; rm -rf usr/lib; ln -s ../real usr/lib; chown -h 60001 usr/lib",
               "/usr/lib", true},
        Change{"a library that is a link to a home",
               "mkdir home; chown 60001 home; mv opt/cuslice/lib/cuslice/libcuslice.so home/;"
               "ln -s ../../../../home/libcuslice.so opt/cuslice/lib/cuslice/libcuslice.so",
               "/home", true},
        Change{"a place for the stub that is another's",
               "mkdir -p usr/lib/cuslice-system; chown 60001 usr/lib/cuslice-system", "/usr/lib/cuslice-system", true},
        Change{"a folder for everybody", "chmod 777 opt/cuslice", "/opt/cuslice", false},
        Change{"a sticky folder for everybody", "chmod 1777 opt", "/opt", false},
        Change{"a library for everybody", "chmod 666 opt/cuslice/lib/cuslice/libcuslice.so",
               "/opt/cuslice/lib/cuslice/libcuslice.so", false},
        Change{"a link to a folder for everybody", "mv opt tmp; chmod 1777 tmp; ln -s tmp opt", "/tmp", false},
        Change{"a link upwards", "mkdir -m 1777 tmp; mv opt tmp/; ln -s ./etc/../tmp/opt opt", "/tmp", false});
    CAPTURE(change.name);
    const Root root;
    if (!root.possible())
        return;
    if (change.others && !can_be_other_users())
        return;
    const Outcome changed = run({"/bin/sh", "-ec", "cd " + root.at(".") + "; " + std::string(change.text)}, plain());
    REQUIRE(changed.exit_code == 0);
    const Words files = root.files();
    const Outcome outcome = root.cuslice({"install", "--system"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.err.starts_with("cuslice: " + std::string(change.file) + ": "));
    CHECK(outcome.out.empty());
    CHECK(root.files() == files);
}

TEST_CASE("an installation that only root can change takes the place of one that was another's") {
    const Root root;
    if (!root.possible())
        return;
    if (!can_be_other_users())
        return;
    REQUIRE(root.cuslice({"install", "--system"}).exit_code == 0);
    const std::string link = root.at("usr/lib/cuslice-system/library");
    fs::remove(link);
    fs::create_directory(root.at("home"));
    REQUIRE(chown(root.at("home").c_str(), 60001, 60001) == 0);
    fs::create_symlink("/home", link);
    CHECK(root.cuslice({"install", "--system"}).exit_code == 0);
    CHECK(fs::read_symlink(link) == "/opt/cuslice/lib/cuslice");
}

TEST_CASE("nothing is installed for a system without being told so") {
    for (const char* command : {"install", "uninstall"}) {
        const std::string name = command;
        const Outcome outcome = run({kLaunch, name}, plain());
        CHECK(outcome.exit_code == 64);
        CHECK(outcome.err == "cuslice: " + name + ": --system is needed, as it changes the machine: cuslice " + name +
                                 " --system [--root DIR]\n");
        CHECK(run({kLaunch, name, "--system", "--root"}, plain()).exit_code == 64);
        CHECK(run({kLaunch, name, "--system", "now"}, plain()).exit_code == 64);
        CHECK(run({kLaunch, name, "--system", "--root", "/not/there"}, plain()).exit_code == 69);
        CHECK(run({kLaunch, name, "--help"}, plain()).out.starts_with("Usage: cuslice " + name + " --system"));
    }
}

}  // namespace cuslice::tests
