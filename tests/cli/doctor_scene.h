// SPDX-License-Identifier: Apache-2.0
// A machine for the tests of `cuslice doctor`: the real launcher and libraries, and the machine's own files (/etc,
// /proc, /run, as far as doctor reads them) below machine/ in a folder of each test's.
#pragma once

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/skip.h"

namespace cuslice::tests {

using Words = std::vector<std::string>;

inline Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

inline const std::string kTree = CUSLICE_TEST_DOCTOR_TREE;
inline const std::string kLibraries = kTree + "/" CUSLICE_TEST_LIBDIR;

/// The user that tests use to be nobody in particular: no system's user (systemd counts those up to 999).
inline constexpr int kStranger = 4321;

/// A machine without anything that doctor finds, and what has been found on it.
class Scene {
  public:
    Scene() {
        std::filesystem::create_directories(root());
        std::filesystem::create_directories(sharing());
        std::filesystem::create_directories(fakes());
        for (const std::string& folder : {sharing(), fakes()})
            std::filesystem::permissions(folder, std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
        REQUIRE(::chmod(folder_.path().c_str(), 0755) == 0);
    }
    ~Scene() = default;
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    const Folder& folder() const { return folder_; }
    std::string sharing() const { return folder_.path() + "/sharing"; }
    /// The folder that stands for the machine's root.
    std::string root() const { return folder_.path() + "/machine"; }
    /// A file of the machine's.
    void machine(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root() + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
    }
    void in_namespace(const std::string& name) const {
        std::filesystem::create_directories(root() + "/proc/self/ns");
        std::filesystem::create_symlink(name, root() + "/proc/self/ns/pid");
    }
    /// Makes the files of MPS's control daemon in its folder, one of the machine's. Returns its pipe.
    std::string mps(const std::string& folder) const {
        std::filesystem::create_directories(root() + folder);
        const std::string control = root() + folder + "/control";
        REQUIRE(::mkfifo(control.c_str(), 0666) == 0);
        return control;
    }
    /// A driver and NVML of one GPU that LD_LIBRARY_PATH leads to; `subfolder` is where they lie.
    void driver(const std::string& subfolder = "driver", bool nvml = true) {
        const std::string path = folder_.path() + "/" + subfolder;
        std::filesystem::create_directories(path);
        std::filesystem::copy_file(CUSLICE_TEST_DOCTOR_STUB, path + "/libcuda.so.1");
        if (nvml)
            std::filesystem::copy_file(CUSLICE_TEST_DOCTOR_STUB, path + "/libnvidia-ml.so.1");
        variables_.push_back("LD_LIBRARY_PATH=" + path);
        real_ = true;
    }
    /// The same without one, if this machine has none.
    bool no_driver() {
        real_ = true;
        const Words look = {"/bin/sh", "-c", "ldconfig -p 2>/dev/null | grep -qE 'libcuda.so.1|libnvidia-ml.so.1'"};
        if (run(look, environment()).exit_code != 0)
            return true;
        skip("this machine has a driver");
        return false;
    }
    /// The fake GPU that the test's own options or variables name.
    void own_fake() { real_ = true; }
    void share_in(const std::string& dir) { dir_ = dir; }
    void set(const std::string& variable) { variables_.push_back(variable); }
    /// An installation of its own, without the fake GPU, so with driver().
    std::string install(const std::string& name = "installed") {
        const std::string tree = folder_.path() + "/" + name, libraries = tree + "/" CUSLICE_TEST_LIBDIR;
        std::filesystem::create_directories(tree + "/bin");
        std::filesystem::create_directories(libraries);
        std::filesystem::copy_file(kTree + "/bin/cuslice", tree + "/bin/cuslice");
        for (const auto& entry : std::filesystem::directory_iterator(kLibraries))
            if (entry.is_regular_file())
                std::filesystem::copy_file(entry, libraries / entry.path().filename());
        launcher_ = tree + "/bin/cuslice";
        return libraries;
    }
    /// As a user whom permissions bind; false where root can't become one.
    bool as_stranger() {
        if (::geteuid() != 0)
            return true;
        if (!can_be_other_users())
            return false;
        before_ = {"/usr/bin/setpriv", "--reuid=" + std::to_string(kStranger), "--regid=" + std::to_string(kStranger),
                   "--clear-groups"};
        return true;
    }
    /// With words of a shell's before it, in mounts of its own; false where there are none.
    bool after(const std::string& words) {
        const bool root = ::geteuid() == 0;
        if (!can_unshare(root ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS))
            return false;
        const Words unshare = root ? Words{"/usr/bin/unshare", "-m"} : Words{"/usr/bin/unshare", "-rm"};
        before_ = with(unshare, {"/bin/sh", "-c", words + " && exec \"$@\"", "sh"});
        return true;
    }
    void shell(const std::string& words) { before_ = {"/bin/sh", "-c", words + " && exec \"$@\"", "sh"}; }

    Words environment() const {
        Words all = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                     "HOME=" + folder_.path() + "/home", "CUSLICE_FAKE_DIR=" + fakes()};
#ifdef __SANITIZE_ADDRESS__
        all.emplace_back("ASAN_OPTIONS=verify_asan_link_order=0");
#endif
        return with(all, variables_);
    }
    Words command(const Words& options) const {
        Words words = with(before_, {launcher_, "doctor", "--dir=" + dir_});
        if (!real_)
            words.push_back("--fake=1xh200");
        return with(words, options);
    }
    /// Findings that are not ok, as "problem proc"; the exit code must match the worst of them. texts() has the whole
    /// answer.
    Words found(const Words& options = {}) {
        const Outcome outcome = run(command(with({"--json"}, options)), environment(), folder_.path());
        INFO(outcome.out << outcome.err);
        const auto answer = nlohmann::json::parse(outcome.out, nullptr, false);
        REQUIRE_FALSE(answer.is_discarded());
        CHECK(answer["version"] == 1);
        Words names;
        texts_ = outcome.out;
        int worst = 0;
        for (const auto& finding : answer["findings"]) {
            const std::string grade = finding["grade"];
            CHECK(finding["advice"].is_null() == (grade == "ok"));
            if (grade == "ok")
                continue;
            names.push_back(grade + " " + finding["name"].get<std::string>());
            worst = worst == 1 || grade == "problem" ? 1 : 2;
        }
        CHECK(outcome.exit_code == worst);
        return names;
    }
    /// The last answer.
    const std::string& texts() const { return texts_; }

  private:
    // The machine's own may be of another version.
    std::string fakes() const { return folder_.path() + "/fakes"; }

    Folder folder_;
    std::string dir_ = sharing();
    std::string launcher_ = kTree + "/bin/cuslice";
    Words before_, variables_;
    bool real_ = false;
    std::string texts_;
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

inline Words problem(const std::string& name) { return {"problem " + name}; }
inline Words warning(const std::string& name) { return {"warning " + name}; }

}  // namespace cuslice::tests
