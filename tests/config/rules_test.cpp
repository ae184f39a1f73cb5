// SPDX-License-Identifier: Apache-2.0
// Effect of the system's rules on settings: nothing that a user sets is above them.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/config/made_rules.h"
#include "tests/skip.h"

namespace cuslice {

TEST_CASE("the first rule that fits holds, in the order of the files' names and within a file") {
    Made made;
    const std::string last = made.rules("20.toml", "[[rule]]\nname = \"c\"\nlimit = \"3GiB\"\n");
    made.rules(".hidden.toml", "nonsense");
    made.rules("05.toml~", "nonsense");
    CHECK(made.seen() == "3221225472 by rule c (" + last + ":3:1)");
    const std::string first = made.rules("10.toml",
                                         "[[rule]]\nname = \"a\"\nuser = \"alicia\"\nlimit = \"1GiB\"\n"
                                         "[[rule]]\nname = \"b\"\nfraction = 0.5\n[[rule]]\nname = \"d\"\n");
    CHECK(made.seen() == "4294967296 by rule b (" + first + ":7:1)");
    // An exemption: from the rules behind it alone.
    made.rules("05.toml", "[[rule]]\nname = \"admins\"\nuser = \"alice\"\n");
    CHECK(made.seen() == "8589934592 by ");
}

TEST_CASE("a rule's ceiling on one GPU wins over its general one, and the smallest of all ceilings holds") {
    Made made;
    const std::string path = made.rules("10.toml",
                                        "[[rule]]\nname = \"a\"\nlimit = \"4GiB\"\ngpu.0.limit = \"2GiB\"\n"
                                        "[rule.gpu.\"GPU-5f2\"]\nfraction = 0.75\n");
    CHECK(made.seen() == "2147483648 by rule a (" + path + ":4:7)");
    CHECK(made.seen({}, kOther) == "6442450944 by rule a (" + path + ":6:1)");
    const std::string system = made.folder.write("system.toml", "[ceiling]\nlimit = \"1GiB\"\n");
    CHECK(made.seen() == "1073741824 by ceiling " + system + ":2:1");
    made.folder.write("system.toml", "[ceiling]\nlimit = \"3GiB\"\n");
    CHECK(made.seen() == "2147483648 by rule a (" + path + ":4:7)");
    CHECK(made.seen({}, kOther) == "3221225472 by ceiling " + system + ":2:1");
}

TEST_CASE("nothing that a user sets is above a rule, and a program may have less") {
    Made made;
    const std::string rule =
        "4294967296 by rule a (" + made.rules("10.toml", "[[rule]]\nname = \"a\"\nlimit = \"4GiB\"\n") + ":3:1)";
    CHECK(made.seen() == rule);
    CHECK(made.seen({"CUSLICE_LIMIT=6GiB"}) == rule);
    CHECK(made.seen({"CUSLICE_LIMIT=6GiB+context"}) == rule);
    CHECK(made.seen({"CUSLICE_FRACTION=1", "CUSLICE_PER_PROCESS=yes"}) == rule);
    CHECK(made.seen({"CUSLICE_LIMIT=1GiB"}) == "1073741824 by CUSLICE_LIMIT");
    // A hand-over, as cuslice run writes it or anybody else.
    CHECK(made.seen({"CUSLICE_SETTINGS=1"}) == rule);
    CHECK(made.seen({"CUSLICE_SETTINGS=1;flag.0 limit * 6GiB --limit"}) == rule);
    CHECK(made.seen({"CUSLICE_SETTINGS=1;system-file.0 ceiling.limit 0 7GiB ceiling%20/x:1:1"}) == rule);
    CHECK(made.seen({"CUSLICE_SETTINGS=1;rule.0 ceiling.limit * 7GiB rule"}).starts_with("cuslice: CUSLICE_SETTINGS"));
    CHECK(made.seen({"CUSLICE_SETTINGS=1;flag.0 limit * 1GiB --limit"}) == "1073741824 by --limit");
    // The system's own file is not taken from there, either.
    const std::string system =
        made.folder.write("system.toml", "[memory]\nlimit = \"1GiB\"\n[ceiling]\nlimit = \"2GiB\"\n");
    CHECK(made.seen({"CUSLICE_SETTINGS=1"}) == "2147483648 by ceiling " + system + ":4:1");
    CHECK(made.seen({"CUSLICE_SETTINGS=1;system-file.0 ceiling.limit 0 7GiB ceiling%20/x:1:1"}) ==
          "2147483648 by ceiling " + system + ":4:1");
}

TEST_CASE("a rule may have processes share its slice, by the user or by the cgroup that its pattern fits") {
    Made made;
    const auto shared = [&](const std::string& text, const std::string& line = "CUSLICE_LIMIT=1GiB") {
        made.rules("10.toml", "[[rule]]\nname = \"a\"\nlimit = \"4GiB\"\ngpu.1.fraction = 0.25\n" + text);
        const char* const lines[] = {line.c_str(), nullptr};
        Settings settings;
        ConfigError error;
        const std::string system = made.folder.path() + "/system.toml";
        if (!load_in_program(settings, lines, open_module, {system.c_str(), made.folder.path().c_str(), ::geteuid()},
                             error))
            return std::string(line_of(error).view());
        const auto limit = shared_limit_for(settings, kGpu, 8 * kGiB), other = shared_limit_for(settings, kOther, kGiB);
        if (settings.shared_rule().empty())
            REQUIRE_FALSE(limit);
        // The rule's own, however little this process asks for.
        if (!settings.shared_rule().empty()) {
            REQUIRE((limit && limit->bytes == 4 * kGiB && limit->origin.starts_with("rule a (")));
            REQUIRE((other && other->bytes == kGiB / 4));
        }
        return std::string(settings.shared_rule()) + " in " + std::string(sharing_folder(settings, "/fake").view());
    };
    const std::string usual = " in /dev/shm/cuslice";
    CHECK(shared("") == "" + usual);
    CHECK(shared("share = \"user\"") == "a" + usual);
    // One that doesn't fit has nobody share anything.
    CHECK(shared("user = \"alicia\"\nshare = \"user\"") == "" + usual);
    const std::string job = shared("cgroup = \"/system.slice/*/job_*\"\nshare = \"cgroup\"");
    CHECK(job.size() == 18 + usual.size());
    CHECK(job.starts_with("a@"));
    const std::string step = shared("cgroup = \"/system.slice/*/job_*/step_*\"\nshare = \"cgroup\"");
    CHECK(step != job);
    made.folder.write("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_5/step_1\n");
    CHECK(shared("cgroup = \"/system.slice/*/job_*\"\nshare = \"cgroup\"") == job);
    CHECK(shared("cgroup = \"/system.slice/*/job_*/step_*\"\nshare = \"cgroup\"") != step);
    made.folder.write("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_6\n");
    CHECK(shared("cgroup = \"/system.slice/*/job_*\"\nshare = \"cgroup\"") != job);
    // Nobody has another slice by a folder of their own.
    const auto ends = [](const std::string& line, std::string_view end) { return line.ends_with(end); };
    const std::string by_user = "share = \"user\"";
    CHECK(shared(by_user, "CUSLICE_DIR=/dev/shm/cuslice") == "a" + usual);
    CHECK(ends(shared(by_user, "CUSLICE_DIR=/tmp/x"), "rule a shares one slice, in /dev/shm/cuslice"));
    CHECK(ends(shared(by_user, "CUSLICE_SETTINGS=1;flag.0 dir * /tmp/x --dir"), "one slice, in /dev/shm/cuslice"));
    CHECK(ends(shared(by_user, "CUSLICE_SPLIT=1GiB+context"), "rule a, whose limit counts contexts as well"));
    made.folder.write("system.toml", "dir = \"/run/gpu\"\n");
    CHECK(shared(by_user) == "a in /run/gpu");
    CHECK(shared(by_user, "CUSLICE_SETTINGS=1") == "a in /run/gpu");
    CHECK(shared(by_user, "CUSLICE_SETTINGS=1;system-file.0 dir * /tmp/x /etc/x") == "a in /run/gpu");
    CHECK(ends(shared(by_user, "CUSLICE_DIR=/dev/shm/cuslice"), "rule a shares one slice, in /run/gpu"));
    // A rule that shares a slice needs to know whose slice it is.
    made.link("proc/self/ns/cgroup", "cgroup:[4026532000]");
    CHECK(shared(by_user) == "a in /run/gpu");
    CHECK(ends(shared("cgroup = \"/**\"\nshare = \"cgroup\""), "cgroup can't be told in a cgroup namespace"));
    made.link("proc/self/ns/user", "user:[4026532000]");
    CHECK(ends(shared(by_user), "can't be told in a user namespace or without /proc"));
}

TEST_CASE("what share may be, and what it needs") {
    const std::string begin = "[[rule]]\nname = \"a\"\n";
    CHECK(refused(begin + "limit = \"1GiB\"\nshare = \"group\"\n").starts_with(":4:1: rule.share: group: "));
    CHECK(refused(begin + "limit = \"1GiB\"\nshare = true\n").find("\"user\" or \"cgroup\"") != std::string::npos);
    CHECK(refused(begin + "share = \"user\"\n").find("share needs a limit or a fraction") != std::string::npos);
    CHECK(refused(begin + "limit = \"1GiB\"\nshare = \"cgroup\"\n").find("needs a cgroup") != std::string::npos);
}

TEST_CASE("a rule is not handed on: each process reads it again") {
    Made made;
    made.rules("10.toml", "[[rule]]\nname = \"a\"\nlimit = \"4GiB\"\n");
    const char* const lines[] = {"CUSLICE_LIMIT=6GiB", nullptr};
    Settings settings;
    ConfigError error;
    const std::string system = made.folder.path() + "/system.toml";
    REQUIRE(load_in_program(settings, lines, open_module, {system.c_str(), made.folder.path().c_str(), ::geteuid()},
                            error));
    std::string text(4096, '\0');
    text.resize(write_handover(settings, text));
    CHECK(text == "1;environment.0 limit * 6GiB CUSLICE_LIMIT");
}

TEST_CASE("without the folder of rules nothing is limited, and the module is not opened") {
    Made made;
    opened = 0;
    CHECK(made.seen() == "8589934592 by ");
    CHECK(made.seen({"CUSLICE_SETTINGS=1"}) == "8589934592 by ");
    CHECK(opened == 0);
}

TEST_CASE("the document's rules are read, and hold as it says") {
    std::ifstream page(CUSLICE_TEST_RULES_PAGE);
    std::string text((std::istreambuf_iterator<char>(page)), {});
    const size_t begin = text.find("```toml\n") + 8;
    REQUIRE(begin != std::string::npos + 8);
    Made made;
    const std::string path = made.rules("10-lab.toml", text.substr(begin, text.find("```", begin) - begin));
    CHECK(made.seen({}, kOther) == "8589934592 by ");  // alice
    made.folder.write("etc/passwd", "");
    CHECK(made.seen({}, kOther) == "4294967296 by rule jobs (" + path + ":8:1)");
    made.folder.write("proc/self/cgroup", "0::/user.slice\n");
    CHECK(made.seen({}, kOther) == "2147483648 by rule students (" + path + ":16:7)");
    CHECK(made.seen() == "8589934592 by rule students (" + path + ":15:1)");
    made.folder.write("etc/group", "");
    CHECK(made.seen() == "4294967296 by rule everybody-else (" + path + ":20:1)");
}

TEST_CASE("rules that others than root can write are refused") {
    Made made;
    const std::string path = made.rules("10.toml", "[[rule]]\nname = \"a\"\nlimit = \"4GiB\"\n");
    const std::string folder = made.folder.path() + "/rules.d";
    for (const std::string& one : {path, folder}) {
        REQUIRE(::chmod(one.c_str(), 0777) == 0);
        CHECK(made.seen() ==
              "cuslice: " + one + ": writable by others than root, so nobody can trust its rules: chmod go-w it");
        REQUIRE(::chmod(one.c_str(), 0755) == 0);
    }
    CHECK(made.seen().starts_with("4294967296 by rule a"));
    if (::geteuid() != 0)
        return;
    for (const std::string& one : {path, folder}) {
        REQUIRE(::chown(one.c_str(), 1001, 0) == 0);
        CHECK(made.seen() ==
              "cuslice: " + one + ": belongs to another user than root, so nobody can trust its rules: chown root it");
        REQUIRE(::chown(one.c_str(), 0, 0) == 0);
    }
    CHECK(made.seen().starts_with("4294967296 by rule a"));
}

TEST_CASE("where users or groups can't be read a rule for a name doesn't pass, and everything is refused") {
    for (const char* name : {"etc/passwd", "etc/group"}) {
        Made made;
        made.rules("10.toml", "[[rule]]\nname = \"a\"\nuser = \"alice\"\nlimit = \"1GiB\"\n");
        CHECK(made.seen().starts_with("1073741824 by rule a"));
        made.link(name, std::filesystem::path(name).filename());  // round and round
        CHECK(made.seen() ==
              "cuslice: " + made.folder.path() + "/" + name + ": cannot be read: too many symbolic links");
        std::filesystem::remove(made.folder.path() + "/" + name);
        CHECK_FALSE(made.seen().starts_with("cuslice: "));  // a machine without such a file
    }
}

TEST_CASE("a mistake in a file of rules refuses everything, wherever it is, and says where") {
    const std::string good = "[[rule]]\nname = \"a\"\n";
    CHECK(refused(good + "limit = 4GiB\n").starts_with(":3:10: not TOML: "));
    CHECK(refused(good + "limit = \"0\"\n") == ":3:1: rule.limit: 0: a limit of 0 leaves no memory: more than 0");
    CHECK(refused(good + "limit = \"4GiB+context\"\n") ==
          ":3:1: rule.limit: 4GiB+context: +context can't be had in a rule");
    CHECK(refused(good + "limit = \"4GiB\"\nfraction = 0.5\n") ==
          ":4:1: rule.fraction: 0.5: given twice for the same GPU: keep one");
    CHECK(refused(good + "gpu.\"0000:81:00.0\".limit = \"4GiB\"\ngpu.\"81:00.0\".limit = \"4GiB\"\n")
              .ends_with(": 4GiB: given twice for the same GPU: keep one"));
    CHECK(refused(good + "headroom = \"4GiB\"\n") ==
          ":3:1: rule.headroom: 4GiB: no such key; a rule has name, user, group, cgroup, executable, share, limit, "
          "fraction, time-share, time-share-cap and gpu.X");
    CHECK(refused(good + "gpu.0.headroom = \"4GiB\"\n") ==
          ":3:7: rule.gpu.0.headroom: 4GiB: a rule's ceiling is a fraction, a limit, a time-share or a "
          "time-share-cap");
    CHECK(refused(good + "gpu.x.limit = \"4GiB\"\n").starts_with(":3:5: rule.gpu.x: "));
    CHECK(refused(good + "user = 1001\n") == ":3:1: rule.user: 1001: a string or an array of strings is needed");
    CHECK(refused(good + "user = []\n") == ":3:1: rule.user: []: a string or an array of strings is needed");
    CHECK(refused(good + "user = \"\"\n").starts_with(":3:1: rule.user: \"\": an empty value fits nobody"));
    CHECK(refused(good + "cgroup = \"job_*\"\n") == ":3:1: rule.cgroup: job_*: a pattern begins with /");
    CHECK(refused("[[rule]]\nlimit = \"4GiB\"\n") == ":1:1: rule: a rule needs a name, as name = \"students\"");
    CHECK(refused("[[rule]]\nname = \"a b\"\n").starts_with(":2:1: rule.name: a b: a name of up to 40 letters"));
    CHECK(refused(good + good) == ":4:1: rule.name: a: there is a rule of this name already");
    CHECK(refused("[rule]\nname = \"a\"\n") == ":1:2: rule: two brackets are needed: [[rule]]");
    CHECK(refused("limit = \"4GiB\"\n") == ":1:1: limit: 4GiB: a file of rules has [[rule]] tables alone");
    Made made;
    made.rules("10.toml", good + "limit = \"4GiB\"\n");
    const std::string behind = made.rules("20.toml", "x = 1\n");
    CHECK(made.seen() == "cuslice: " + behind + ":1:1: x: 1: a file of rules has [[rule]] tables alone");
    const std::string twice = made.rules("20.toml", good);
    CHECK(made.seen() == "cuslice: " + twice + ":2:1: rule.name: a: there is a rule of this name already");
}

}  // namespace cuslice
