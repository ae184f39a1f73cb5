// SPDX-License-Identifier: Apache-2.0
// Settings that a preloaded library reads by itself: with a hand-over and without, through the module that it would
// open.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"
#include "config/resolve.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/skip.h"

namespace cuslice {
namespace {

using tests::Folder;

int opened = 0;

cuslice_toml_parse_function* open_module(Reason& why) {
    ++opened;
    void* const module = ::dlopen(CUSLICE_TEST_MODULE, RTLD_NOW | RTLD_LOCAL);
    void* const function = module == nullptr ? nullptr : ::dlsym(module, "cuslice_toml_parse");
    if (function == nullptr)
        why.assign(::dlerror());
    return reinterpret_cast<cuslice_toml_parse_function*>(function);
}

cuslice_toml_parse_function* no_module(Reason& why) {
    why.assign("the module is not there");
    return nullptr;
}

const GpuIdentity kGpu{0, "GPU-5f10", "0000:01:00.0"};
constexpr uint64_t kGiB = uint64_t{1} << 30;

// "4294967296 by CUSLICE_LIMIT", or the line that refuses.
std::string guest(const std::vector<std::string>& environment, const Folder& folder, OpenToml open = open_module) {
    std::vector<const char*> lines;
    for (const std::string& line : environment)
        lines.push_back(line.c_str());
    lines.push_back(nullptr);
    Settings settings;
    ConfigError error;
    const std::string system = folder.path() + "/system.toml";
    if (!load_in_program(settings, lines.data(), open, {system.c_str(), "", ::geteuid()}, error))
        return std::string(line_of(error).view());
    const Amount amount = amount_for(settings, kGpu, 8 * kGiB);
    return std::to_string(amount.bytes) + " by " + std::string(amount.origin);
}

}  // namespace

TEST_CASE("without files and variables nothing is limited and the module is not opened") {
    const Folder folder;
    opened = 0;
    CHECK(guest({"HOME=" + folder.path()}, folder) == "8589934592 by ");
    CHECK(guest({"HOME=" + folder.path(), "CUSLICE_LIMIT=1GiB"}, folder) == "1073741824 by CUSLICE_LIMIT");
    CHECK(guest({}, folder) == "8589934592 by ");
    CHECK(opened == 0);
}

TEST_CASE("without a hand-over the user's and the system's file are read, never the current folder's") {
    const Folder folder;
    const std::string home = "HOME=" + folder.path();
    const std::string system = folder.write("system.toml", "[memory]\nlimit = \"3GiB\"\n[ceiling]\nlimit = \"6GiB\"\n");
    CHECK(guest({home}, folder) == "3221225472 by " + system + ":2:1");
    const std::string user = folder.write(".config/cuslice/cuslice.toml", "[memory]\nlimit = \"7GiB\"\n");
    CHECK(guest({home}, folder) == "6442450944 by ceiling " + system + ":4:1");
    const std::string named = folder.write("named.toml", "[memory]\nlimit = \"1GiB\"\n");
    CHECK(guest({home, "CUSLICE_CONFIG=" + named}, folder) == "1073741824 by " + named + ":2:1");
    CHECK(guest({home, "CUSLICE_FRACTION=0.25", "CUSLICE_CONFIG=" + named}, folder) ==
          "2147483648 by CUSLICE_FRACTION");
}

TEST_CASE("with a hand-over the user's and the system's file are the launcher's, a file named since then is not") {
    const Folder folder;
    folder.write("system.toml", "[memory]\nlimit = \"3GiB\"\n");
    const std::string home = "HOME=" + folder.path();
    CHECK(guest({home, "CUSLICE_SETTINGS=1"}, folder) == "8589934592 by ");
    CHECK(guest({home, "CUSLICE_SETTINGS=1;user-file.0 limit * 2GiB /u:2:1"}, folder) == "2147483648 by /u:2:1");
    const std::string named = folder.write("named.toml", "[memory]\nlimit = \"1GiB\"\n");
    CHECK(guest({home, "CUSLICE_SETTINGS=1;user-file.0 limit * 2GiB /u:2:1", "CUSLICE_CONFIG=" + named}, folder) ==
          "1073741824 by " + named + ":2:1");
    CHECK(guest({home, "CUSLICE_SETTINGS=1;system-file.0 ceiling.limit * 2GiB ceiling%20/s:2:1"}, folder) ==
          "2147483648 by ceiling /s:2:1");
}

TEST_CASE("a file that cannot be read as it should be refuses everything") {
    const Folder folder;
    const std::string home = "HOME=" + folder.path();
    const std::string user = folder.write(".config/cuslice/cuslice.toml", "[memory]\nlimit = 5\n");
    CHECK(guest({home}, folder) == "cuslice: " + user + ":2:1: memory.limit: 5: 5 bytes? did you mean 5GiB, in quotes");
    CHECK(guest({home}, folder, no_module) == "cuslice: " + user + ": the module is not there");
    folder.write(".config/cuslice/cuslice.toml", std::string(2 << 20, '\n'));
    CHECK(guest({home}, folder) == "cuslice: " + user + ": larger than 1 MiB: not a file of settings");
    folder.write(".config/cuslice/cuslice.toml", std::string("a = \"\0\"", 8));
    CHECK(guest({home}, folder).starts_with("cuslice: " + user + ":1:"));
    ::unlink(user.c_str());
    REQUIRE(::mkfifo(user.c_str(), 0600) == 0);
    CHECK(guest({home}, folder) == "cuslice: " + user + ": not a regular file");
    ::unlink(user.c_str());
    REQUIRE(::symlink(user.c_str(), user.c_str()) == 0);
    CHECK(guest({home}, folder) == "cuslice: " + user + ": cannot be read: too many symbolic links");
}

TEST_CASE("a user's file that another user can write chooses limits, and no code or files") {
    const Folder folder;
    const std::string home = "HOME=" + folder.path(), name = ".config/cuslice/cuslice.toml";
    const auto others = GENERATE("writable by all", "another user's");
    CAPTURE(others);
    const bool writable = others == std::string_view("writable by all");
    const auto give_away = [&](const std::string& path) {
        return writable ? ::chmod(path.c_str(), 0646) == 0 : ::chown(path.c_str(), 1234, 1234) == 0;
    };
    const auto answer = [&](const std::string& text, bool own) {
        const std::string path = folder.write(name, text);
        REQUIRE(::chmod(path.c_str(), 0644) == 0);
        REQUIRE((own || give_away(path)));
        const std::string said = guest({home}, folder);
        ::unlink(path.c_str());
        return said;
    };
    if (!writable && !tests::can_be_other_users())
        return;

    CHECK(answer("log = \"info\"\n[memory]\nlimit = \"1GiB\"\n", false).starts_with("1073741824 by "));
    for (const char* const line :
         {"driver = \"/tmp/x.so\"", "record = \"/tmp/x\"", "dir = \"/tmp/x\"", "log = \"info:/tmp/x\""}) {
        CAPTURE(line);
        CHECK(answer(std::string(line) + "\n", true) == "8589934592 by ");
        CHECK(answer(std::string(line) + "\n", false).find(" is not taken from a file that another user can write") !=
              std::string::npos);
    }
}

TEST_CASE("a system's file that others than root can change is refused, with a hand-over and without") {
    const Folder folder;
    const std::string path = folder.write("system.toml", "[ceiling]\nlimit = \"1GiB\"\n");
    const std::string environment = GENERATE("HOME=/none", "CUSLICE_SETTINGS=1");
    const auto answer = [&] { return guest({environment}, folder); };
    const std::string held = "1073741824 by ceiling " + path + ":2:1", refused = "cuslice: " + path;
    CAPTURE(environment);
    CHECK(answer() == held);
    REQUIRE(::chmod(path.c_str(), 0646) == 0);
    CHECK(answer() == refused + ": writable by others than root, so nobody can trust its ceilings: chmod go-w it");
    REQUIRE(::chmod(path.c_str(), 0664) == 0);
    if (::getegid() == 0)
        CHECK(answer() == held);
    if (!tests::can_be_other_users())
        return;
    REQUIRE(::chown(path.c_str(), 0, 1234) == 0);
    CHECK(answer() == refused + ": writable by others than root, so nobody can trust its ceilings: chmod go-w it");
    // Its owner can write whatever the mode says now. 65534 is root's number in a user namespace, which this is not.
    for (const unsigned owner : {1234u, 65534u}) {
        REQUIRE(::chown(path.c_str(), owner, 0) == 0);
        REQUIRE(::chmod(path.c_str(), 0444) == 0);
        CHECK(answer() ==
              refused + ": belongs to another user than root, so nobody can trust its ceilings: chown root it");
    }
    REQUIRE(::chown(path.c_str(), 0, 0) == 0);
    CHECK(answer() == held);
}

TEST_CASE("a group's limit without a group limits nothing, and is refused; in a file it waits for a group") {
    const Folder folder;
    const std::string home = "HOME=" + folder.path();
    const std::string none =
        "cuslice: CUSLICE_GROUP_LIMIT: 8GiB: it needs a group, as --group NAME; for this "
        "program alone use --limit";
    CHECK(guest({home, "CUSLICE_GROUP_LIMIT=8GiB"}, folder) == none);
    CHECK(guest({home, "CUSLICE_GROUP_LIMIT=8GiB", "CUSLICE_GROUP=lab"}, folder) == "8589934592 by ");
    CHECK(guest({home, "CUSLICE_SETTINGS=1;flag.0 group-limit * 8GiB --group-limit"}, folder) == "8589934592 by ");
    folder.write(".config/cuslice/cuslice.toml", "[memory]\ngroup-limit = \"8GiB\"\n");
    CHECK(guest({home}, folder) == "8589934592 by ");
}

TEST_CASE("a file that a variable names is refused in that variable's name") {
    const Folder folder;
    CHECK(guest({"HOME=" + folder.path(), "CUSLICE_CONFIG=1"}, folder) ==
          "cuslice: CUSLICE_CONFIG: 1: cannot be read: no such file");
}

TEST_CASE("leading a static runtime elsewhere needs the launcher, and not doing so needs nothing") {
    const Folder folder;
    const std::string home = "HOME=" + folder.path(), limit = "CUSLICE_LIMIT=1GiB";
    const std::string redirect = "CUSLICE_REDIRECT_RUNTIME=";
    CHECK(guest({home, limit, redirect + "program"}, folder) ==
          "cuslice: CUSLICE_REDIRECT_RUNTIME: program: works under cuslice run only");
    CHECK(guest({home, limit, redirect + "no"}, folder) == "1073741824 by CUSLICE_LIMIT");
    CHECK(guest({home, redirect + "program", "CUSLICE_SETTINGS=1;flag.0 limit * 1GiB --limit"}, folder) ==
          "1073741824 by --limit");
}

TEST_CASE("a fake GPU named in a file needs the launcher") {
    const Folder folder;
    const std::string home = "HOME=" + folder.path();
    const std::string user = folder.write(".config/cuslice/cuslice.toml", "fake = \"4xh200\"\n");
    CHECK(guest({home}, folder) ==
          "cuslice: " + user +
              ":1:1: fake: 4xh200: fake in a file works under cuslice run only: set CUSLICE_FAKE instead");
    CHECK(guest({home, "CUSLICE_FAKE=t4"}, folder) == "8589934592 by ");
    folder.write(".config/cuslice/cuslice.toml", "fake-kernels = \"error\"\n");
    CHECK(guest({home}, folder) ==
          "cuslice: " + user +
              ":1:1: fake-kernels: error: fake-kernels in a file works under cuslice run only: set "
              "CUSLICE_FAKE_KERNELS instead");
}

TEST_CASE("texts that the parser would trip over are refused with their place") {
    Reason unused;
    cuslice_toml_parse_function* const parse = open_module(unused);
    REQUIRE(parse != nullptr);
    const std::string zero("log = \"info\"\n[\0]\n", 17), brackets(40, '[');
    Settings settings;
    ConfigError error;
    CHECK_FALSE(load_file_text(settings, zero, "/a.toml", Source::config_file, parse, error));
    CHECK(std::string(line_of(error).view()) ==
          "cuslice: /a.toml:2:2: [\\x00]: not TOML: a zero byte is not allowed in TOML");
    CHECK_FALSE(load_file_text(settings, brackets, "/a.toml", Source::config_file, parse, error));
    CHECK(settings.entries().empty());
}

}  // namespace cuslice
