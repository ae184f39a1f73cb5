// SPDX-License-Identifier: Apache-2.0
// A program gets the driver that the loader would have taken, and cuslice catches it whatever stands beside or before
// the library: on WSL2 the driver comes in two stages, and other libraries stand before dlsym.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBlock = 64 * kMiB;

// A machine on which the driver has to be found: a fake GPU behind libraries that carry NVIDIA's names and lead on to
// it (guest/stage/). It has NVIDIA's names too, as on WSL2, or a prefix before them.
class Host {
  public:
    explicit Host(const std::string& prefix = "behind-") : prefix_(prefix) {
        fs::create_directory(at("store"));
        fs::create_symlink(kFakeDriver, at("store/" + prefix + "libcuda.so.1.1"));
        fs::create_symlink(kFakeFolder + "/libnvidia-ml.so.1", at("store/" + prefix + "libnvidia-ml.so.1"));
        fs::create_symlink(kFakeFolder + "/profiles", at("store/profiles"));
    }

    std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
    // Lays a driver out as its packages do; the path that programs know it by.
    std::string put_driver(const std::string& where) const {
        fs::create_directories(at(where));
        fs::copy_file(kGuests + "/libguest_stage_cuda.so", at(where + "/libcuda.so.1"));
        fs::create_symlink("libcuda.so.1", at(where + "/libcuda.so"));
        fs::copy_file(kGuests + "/libguest_stage_nvml.so", at(where + "/libnvidia-ml.so.1"));
        return at(where + "/libcuda.so.1");
    }
    // A module of a program, below this folder, so that its own search path leads here.
    std::string put_module(const std::string& name) const {
        fs::copy_file(kGuests + "/lib" + name + ".so", at(name + ".so"));
        return at(name + ".so");
    }
    const std::string& books() const { return folder_.path(); }

    Words environment(const Words& more) const {
        Words all = plain({"CUSLICE_FAKE_DIR=" + books_.path(), "CUSLICE_LIMIT=1GiB", "CUSLICE_LOG=info",
                           "GUEST_FAKE=1xlaptop-2g", "GUEST_STORE=" + at("store"), "GUEST_PREFIX=" + prefix_});
        bool preloads = false;
        for (const std::string& one : more)
            preloads = preloads || one.rfind("LD_PRELOAD=", 0) == 0;
        if (!preloads)
            all.push_back("LD_PRELOAD=" + preload_list());
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    Held held(Guest& guest) const { return books_of(books_.path(), guest.pid()); }

  private:
    std::string prefix_;
    Folder folder_, books_;
};

Words module_route(const std::string& module, const std::string& route, const char* scope = "module") {
    return Guest::route(std::string(scope) + "=" + module + "," + route);
}

// The line that says which driver was taken.
std::string driver_line(Guest& guest) {
    for (const std::string& line : guest.complaints())
        if (line.rfind("cuslice: the driver is ", 0) == 0)
            return line;
    return guest.err();
}

// Allocates until it is refused, which has to be at the limit.
void check_limit(const Host& host, Guest& guest) {
    retain_device(guest);
    const Words answer = split_words(guest.ask("fill " + std::to_string(kBlock)));
    INFO(guest.err());
    REQUIRE(answer.size() == 2);
    CHECK(answer[0] == std::to_string(kOutOfMemory));
    const Held held = host.held(guest);
    CHECK(held.known);
    CHECK(held.used <= kGiB);
    CHECK(held.used + kBlock + kGiB / 10 > kGiB);
}

bool has_loaded(Guest& guest, const std::string& path) {
    std::ifstream maps("/proc/" + std::to_string(guest.pid()) + "/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.size() > path.size() && line.compare(line.size() - path.size(), path.size(), path) == 0)
            return true;
    return false;
}

std::string found(const std::string& path, const std::string& how) {
    return "cuslice: the driver is " + path + ", found " + how;
}

}  // namespace

TEST_CASE("on WSL2 the driver and NVML open their second stages under our names, and get them") {
    if (!kSanitizer.empty()) {
        skip("the stages are not built with the sanitizer");
        return;
    }
    const std::string when = GENERATE("GUEST_STAGE=late", "GUEST_STAGE=early");
    const std::string route = GENERATE("linked", "dlopen=libcuda.so.1", "dlopen=libcuda.so", "v2");
    CAPTURE(when, route);
    const Host host("");
    const std::string path = host.put_driver("wsl");
    Guest guest(Guest::route(route), host.environment({when, "LD_LIBRARY_PATH=" + host.at("wsl")}));
    check_limit(host, guest);
    CHECK(guest.code("nvml") == kSuccess);
    CHECK(guest.number("nvmlmemory 0", 1) == kGiB);
    CHECK(guest.finish() == 0);
    CHECK(driver_line(guest) ==
          found(route == "dlopen=libcuda.so" ? host.at("wsl/libcuda.so") : path, "in the search path"));
}

TEST_CASE("the driver is the one that the loader would have taken for whoever opens it") {
    if (!kSanitizer.empty()) {
        skip("who opens it is the sanitizer's runtime, which stands before dlopen");
        return;
    }
    const Host host;
    struct Case {
        const char* name;
        Words route;
        std::string path;
        const char* how;
        Words environment = {};
    };
    const std::string own = host.put_driver("driver"), other = host.put_driver("other");
    [[maybe_unused]] const std::string better = host.put_driver("caps/glibc-hwcaps/x86-64-v2");
    const std::string plain_one = host.put_driver("caps");
    const std::string search = "in the search path";
    const std::string elsewhere = "LD_LIBRARY_PATH=" + host.at("other");
    const std::vector<Case> cases {
        {"RUNPATH of the library that opens it",
         module_route(host.put_module("guest_module_runpath"), "dlopen=libcuda.so.1"), own, "in the search path"},
            {"the same, as libcuda.so", module_route(host.at("guest_module_runpath.so"), "dlopen=libcuda.so"),
             host.at("driver/libcuda.so"), "in the search path"},
            {"LD_LIBRARY_PATH before its RUNPATH",
             module_route(host.at("guest_module_runpath.so"), "dlopen=libcuda.so.1"),
             other,
             "in the search path",
             {elsewhere}},
            {"RPATH of the library that opens it, before LD_LIBRARY_PATH",
             module_route(host.put_module("guest_module_rpath"), "dlopen=libcuda.so.1"),
             own,
             "in the search path",
             {elsewhere}},
            {"RUNPATH of the library that needs it", module_route(host.put_module("guest_module_needing"), "linked"),
             own, "in the search path"},
            {"a path", Guest::route("dlopen=" + own), own, "at the path that was asked for", {elsewhere}},
            {"LD_PRELOAD behind us",
             Guest::route("dlopen=libcuda.so.1"),
             own,
             "loaded already",
             {elsewhere, "LD_PRELOAD=" + preload_list() + ":" + own}},
#if defined(__x86_64__)  // the C library knows no such levels of aarch64
            {"glibc-hwcaps",
             Guest::route("dlopen=libcuda.so.1"),
             better,
             "in the search path",
             {"LD_LIBRARY_PATH=" + host.at("caps")}},
#endif
            {"LD_LIBRARY_PATH", Guest::route("linked"), other, "in the search path", {elsewhere}},
    };
    for (const Case& one : cases) {
        INFO(one.name);
        Guest guest(one.route, host.environment(one.environment));
        check_limit(host, guest);
        CHECK(guest.code("nvml") == kSuccess);
        CHECK(guest.finish() == 0);
        CHECK(driver_line(guest) == found(one.path, one.how));
    }
}

TEST_CASE("the loader's cache comes before its default folders, as NVIDIA's compat drivers need it") {
    if (!can_unshare(CLONE_NEWNS))
        return;
    const Host host;
    const std::string compat = host.put_driver("compat");
    host.put_driver("usual");
    // A default folder that has a driver too. $1 and what follows: the program.
    const std::string script = host.at("mount.sh");
    const std::string text =
        "set -e\n"
        "cd \"$HOST\"\n"
        "mkdir up && mount -t tmpfs none up && mkdir up/data up/work\n"
        "mount -t overlay overlay -o lowerdir=/usr/lib,upperdir=up/data,workdir=up/work /usr/lib\n"
        "{ [ -z \"$LISTED\" ] || echo \"$PWD/compat\"; cat /etc/ld.so.conf.d/*.conf; } >conf\n"
        "ldconfig -f conf -C cache\n"
        "cp usual/libcuda.so.1 usual/libnvidia-ml.so.1 /usr/lib/\n"
        "mount --bind cache /etc/ld.so.cache\n"
        "LD_PRELOAD=$PRELOAD exec \"$@\"\n";
    std::FILE* const file = std::fopen(script.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
    const Words inside{"/usr/bin/env", "unshare", "--mount", "--propagation", "private", "/bin/sh", script};
    Words environment = host.environment({"LD_PRELOAD=", "PRELOAD=" + preload_list(), "HOST=" + host.at("")});
    Words trial = inside;
    trial.push_back("true");
    if (run(trial, environment).exit_code != 0) {
        skip("no mount of its own here");
        return;
    }
    for (const bool listed : {true, false}) {
        CAPTURE(listed);
        Words words = inside;
        for (const std::string& word : Guest::route("dlopen=libcuda.so.1"))
            words.push_back(word);
        if (listed)
            environment.push_back("LISTED=1");
        fs::remove_all(host.at("up"));
        Guest guest(words, environment);
        check_limit(host, guest);
        CHECK(has_loaded(guest, compat) == listed);
        CHECK(guest.finish() == 0);
        const std::string line = driver_line(guest);
        if (listed)
            CHECK(line == found(compat, "in the loader's cache"));
        else
            CHECK(line.find("/lib/libcuda.so.1, found in a default folder") != line.npos);
        environment.pop_back();
    }
}

TEST_CASE("code that is opened with RTLD_DEEPBIND and opens libcuda.so is caught by that name") {
    if (!kSanitizer.empty()) {
        skip("a sanitizer's runtime refuses RTLD_DEEPBIND");
        return;
    }
    const std::string name = GENERATE("libcuda.so", "libcuda.so.1");
    CAPTURE(name);
    const Folder books;
    Guest guest(module_route(kGuests + "/libguest_module_plain.so", "dlopen=" + name, "deepmodule"),
                sliced("1xlaptop-2g", books.path(), {"CUSLICE_LIMIT=1GiB", "LD_LIBRARY_PATH=" + kFakeFolder}));
    retain_device(guest);
    CHECK(guest.code("fill " + std::to_string(kBlock)) == kOutOfMemory);
    const Held held = books_of(books.path(), guest.pid());
    CHECK(held.known);
    CHECK(held.used <= kGiB);
}

TEST_CASE("a driver that RTLD_DEEPBIND has brought in by a path is named") {
    if (!kSanitizer.empty()) {
        skip("a sanitizer's runtime refuses RTLD_DEEPBIND");
        return;
    }
    const Host host;
    const std::string path = host.put_driver("driver");
    const auto count = [&](const std::string& scope) {
        Guest guest(module_route(kGuests + "/libguest_module_plain.so", "dlopen=" + path, scope.c_str()),
                    host.environment({}));
        guest.ask("nvml");  // this comes to us in any case
        guest.finish();
        unsigned lines = 0;
        for (const std::string& line : guest.complaints())
            lines += line == "cuslice: " + path +
                                 " was loaded past cuslice (RTLD_DEEPBIND): code that calls it directly has no limit";
        return lines;
    };
    CHECK(count("deepmodule") == 1);
    CHECK(count("module") == 0);
}

TEST_CASE("another library that stands before dlsym leaves the limit in place") {
    if (!kSanitizer.empty()) {
        skip("a sanitizer's runtime calls dlsym before that library can answer");
        return;
    }
    const std::string interposer = kGuests + "/libguest_interposer.so";
    const bool behind = GENERATE(true, false);
    const std::string route = GENERATE("linked", "dlopen=libcuda.so.1", "v2");
    CAPTURE(behind, route);
    const Folder books;
    const std::string preload =
        behind ? preload_list() + ":" + interposer
               : (kSanitizerRuntime.empty() ? "" : kSanitizerRuntime + ":") + interposer + ":" + kPreloaded;
    Guest guest(Guest::route(route), plain({"CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(),
                                            "CUSLICE_LIMIT=1GiB", "LD_PRELOAD=" + preload}));
    retain_device(guest);
    CHECK(guest.code("nvml") == kSuccess);
    CHECK(guest.number("nvmlmemory 0", 1) == kGiB);
    CHECK(guest.code("fill " + std::to_string(kBlock)) == kOutOfMemory);
    const Held held = books_of(books.path(), guest.pid());
    CHECK(held.known);
    CHECK(held.used <= kGiB);
    CHECK(held.used > kGiB / 2);
    CHECK(guest.finish() == 0);
}

namespace {

/// Other names of the driver's file and NVML's: with a version, as packages have them, links and a second name.
struct OtherNames {
    explicit OtherNames(const Host& host) : folder(host.at("named")) {
        host.put_driver("named");
        fs::rename(folder + "/libcuda.so.1", folder + "/libcuda.so.580.95.05");
        fs::rename(folder + "/libnvidia-ml.so.1", folder + "/libnvidia-ml.so.580.95.05");
        fs::create_symlink("libcuda.so.580.95.05", folder + "/libcuda.so.1");
        fs::create_symlink("libnvidia-ml.so.580.95.05", folder + "/libnvidia-ml.so.1");
        fs::create_symlink("libcuda.so.580.95.05", folder + "/gpu.so");
        fs::create_symlink("libnvidia-ml.so.580.95.05", folder + "/management.so");
        fs::create_hard_link(folder + "/libcuda.so.580.95.05", folder + "/second.so");
        fs::create_hard_link(folder + "/libnvidia-ml.so.580.95.05", folder + "/second-management.so");
    }
    std::string folder;
};

}  // namespace

TEST_CASE("a driver that is opened by another name of its file is the same driver") {
    if (!kSanitizer.empty()) {
        skip("who opens it is the sanitizer's runtime, which stands before dlopen");
        return;
    }
    const std::string name = GENERATE("libcuda.so.580.95.05", "/libcuda.so.580.95.05", "/gpu.so", "/second.so");
    const bool late = GENERATE(false, true);
    CAPTURE(name, late);
    const Host host;
    const OtherNames names(host);
    const std::string opened = "dlopen=" + (name[0] == '/' ? names.folder + name : name);
    const Words route = late ? module_route(kGuests + "/libguest_module_plain.so", opened) : Guest::route(opened);
    Guest guest(route, host.environment({"LD_LIBRARY_PATH=" + names.folder}));
    check_limit(host, guest);
    CHECK(guest.number("info", 2) == kGiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("NVML that is opened by another name of its file shows the slice, and is initialised") {
    if (!kSanitizer.empty()) {
        skip("who opens it is the sanitizer's runtime, which stands before dlopen");
        return;
    }
    const std::string name =
        GENERATE("libnvidia-ml.so.580.95.05", "/libnvidia-ml.so.580.95.05", "/management.so", "/second-management.so");
    CAPTURE(name);
    const Host host;
    const OtherNames names(host);
    Guest guest(Guest::route("dlopen=libcuda.so.1"), host.environment({"LD_LIBRARY_PATH=" + names.folder}));
    CHECK(guest.code("nvmlname " + (name[0] == '/' ? names.folder + name : name)) == kSuccess);
    CHECK(guest.code("nvml") == kSuccess);
    CHECK(guest.code("nvmlcount") == kSuccess);
    CHECK(guest.number("nvmlmemory 0", 1) == kGiB);
    CHECK(guest.finish() == 0);
}

TEST_CASE("a library that needs the driver by the name of its file is limited") {
    if (!kSanitizer.empty()) {
        skip("who opens it is the sanitizer's runtime, which stands before dlopen");
        return;
    }
    const Host host;
    const OtherNames names(host);
    Guest guest(module_route(host.put_module("guest_module_versioned"), "linked"),
                host.environment({"LD_LIBRARY_PATH=" + names.folder}));
    check_limit(host, guest);
    CHECK(guest.finish() == 0);
}

TEST_CASE("dlmopen in the program's namespace gets ours, and in another one a line says that it has no limit") {
    if (!kSanitizer.empty()) {
        skip("a sanitizer's runtime can't be in two namespaces");
        return;
    }
    const std::string name = GENERATE("libcuda.so.1", "libcuda.so.580.95.05", "/gpu.so");
    CAPTURE(name);
    const Host host;
    const OtherNames names(host);
    const std::string opened = name[0] == '/' ? names.folder + name : name;
    const Words environment = host.environment({"LD_LIBRARY_PATH=" + names.folder});
    {
        Guest guest(Guest::route("base-dlmopen=" + opened), environment);
        check_limit(host, guest);
        CHECK(guest.finish() == 0);
    }
    Guest outside(Guest::route("dlmopen=" + opened), environment);
    outside.ask("init");
    outside.finish();
    const Words lines = outside.complaints();
    const std::string expected =
        "cuslice: " + opened + " is opened in a namespace of its own (dlmopen): code there has no limit";
    CHECK(std::count(lines.begin(), lines.end(), expected) == 1);
}

TEST_CASE("a name of the driver's that leads to no file opens nothing") {
    const std::string name = GENERATE("libcuda.so.999.1", "/nowhere/libcuda.so.580.95.05", "/dev/null");
    CAPTURE(name);
    const Host host;
    const OtherNames names(host);
    Guest guest(Guest::route("dlopen=" + name), host.environment({"LD_LIBRARY_PATH=" + names.folder}));
    CHECK(guest.ask("init") == "(gone)");
    guest.finish();
    CHECK(guest.err().find("guest: ") != std::string::npos);
}

}  // namespace cuslice::tests
