// The rules of the system: for whom one is, and that nothing that a user sets is above it.
#include <dlfcn.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/rules/accounts.h"
#include "config/rules/glob.h"
#include "config/rules/identity.h"
#include "config/rules/rule.h"
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
    if (function == nullptr) why.assign(::dlerror());
    return reinterpret_cast<cuslice_toml_parse_function*>(function);
}

const GpuIdentity kGpu{0, "GPU-5f10", "0000:01:00.0"};
const GpuIdentity kOther{1, "GPU-5f20", "0000:81:00.0"};
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// A machine in a folder: its rules, its users and groups, and what /proc says of this process.
struct Made {
    Made() {
        folder.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:" + std::to_string(::getuid()) +
                                       ":1::/:/bin/sh\n" + "alicia:x:4000000001:1::/:/bin/sh\n");
        folder.write("etc/group", "students:x:" + std::to_string(::getgid()) + ":\nstaff:x:4000000002:alice\n");
        folder.write("proc/self/cgroup",
                     "4:memory:/old/job_7\n0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n");
        link("proc/self/exe", "/usr/bin/python3.11");
        link("proc/self/ns/user", "user:[4026531837]");
        link("proc/self/ns/cgroup", "cgroup:[4026531835]");
    }
    void link(const std::string& name, const std::string& target) {
        // Never written through a link that is there already: it may lead out of the folder.
        const std::filesystem::path path = folder.path() + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::filesystem::remove(path);
        std::filesystem::create_symlink(target, path);
    }
    std::string rules(const std::string& name, const std::string& text) {
        const std::string path = folder.write("rules.d/" + name, text);
        REQUIRE(::chmod(path.c_str(), 0644) == 0);
        REQUIRE(::chmod((folder.path() + "/rules.d").c_str(), 0755) == 0);
        return path;
    }
    /// "4294967296 by CUSLICE_LIMIT", or the line that refuses.
    std::string seen(const std::vector<std::string>& environment = {}, const GpuIdentity& gpu = kGpu,
                     unsigned owner = ::geteuid()) {
        std::vector<const char*> lines;
        for (const std::string& line : environment) lines.push_back(line.c_str());
        lines.push_back(nullptr);
        Settings settings;
        ConfigError error;
        const std::string system = folder.path() + "/system.toml";
        if (!load_in_program(settings, lines.data(), open_module, {system.c_str(), folder.path().c_str(), owner},
                             error))
            return std::string(line_of(error).view());
        const Amount amount = amount_for(settings, gpu, 8 * kGiB);
        return std::to_string(amount.bytes) + " by " + std::string(amount.origin);
    }
    /// Whether a rule with these conditions is for this process.
    bool fits(const std::string& conditions, bool with_limit = true) {
        rules("10.toml", "[[rule]]\nname = \"tried\"\n" + conditions + (with_limit ? "\nlimit = \"1GiB\"\n" : "\n") +
                             "[[rule]]\nname = \"rest\"\nlimit = \"2GiB\"\n");
        const std::string said = seen();
        INFO(said);
        const bool tried = said.starts_with(with_limit ? "1073741824 by rule tried (" : "8589934592 by ");
        REQUIRE((tried || said.starts_with("2147483648 by rule rest (")));
        return tried;
    }

    Folder folder;
};

std::string refused(const std::string& text) {
    Made made;
    const std::string path = made.rules("10.toml", text);
    const std::string said = made.seen();
    REQUIRE(said.starts_with("cuslice: " + path));
    return said.substr(("cuslice: " + path).size());
}

}  // namespace

TEST_CASE("a pattern of a rule fits whole components, and two stars fit several") {
    using rules::fits_glob;
    CHECK(fits_glob("/usr/bin/python3*", "/usr/bin/python3.11"));
    CHECK(fits_glob("/usr/bin/python3*", "/usr/bin/python3"));
    CHECK_FALSE(fits_glob("/usr/bin/python3*", "/usr/bin/python3/x"));
    CHECK_FALSE(fits_glob("/usr/bin/python3*", "/x/usr/bin/python3"));
    CHECK(fits_glob("/opt/**/python", "/opt/a/b/python"));
    CHECK_FALSE(fits_glob("/opt/*/python", "/opt/a/b/python"));
    CHECK(fits_glob("/a?c", "/abc"));
    CHECK_FALSE(fits_glob("/a?c", "/a/c"));
    CHECK_FALSE(fits_glob("/a", "/ab"));
    CHECK_FALSE(fits_glob("/ab", "/a"));
    CHECK(fits_glob("/" + std::string(200, '*') + "b", "/" + std::string(4000, 'a') + "b"));
    CHECK_FALSE(fits_glob(std::string(600, '*'), "/a"));
    using rules::outermost_fit;
    CHECK(outermost_fit("/s/job_*", "/s/job_5/step_0") == "/s/job_5");
    CHECK(outermost_fit("/s/**", "/s/job_5/step_0") == "/s/job_5");
    CHECK(outermost_fit("/", "/s/job_5") == "/");
    CHECK(outermost_fit("/job_*", "/s/job_5").empty());
    CHECK(outermost_fit("/s/job_5", "/s/job_5") == "/s/job_5");
    CHECK(outermost_fit("/s/job_5", "/s/job_55").empty());
}

TEST_CASE("users and groups are found in the machine's files by their names, and numbers outside by a map") {
    unsigned number = 0;
    const std::string users = "alicia:x:7:1::/:/bin/sh\nalice:x:1001:1::/:/bin/sh\nlast:x:12";
    CHECK((rules::find_number(users, "alice", number) && number == 1001));
    CHECK((rules::find_number(users, "last", number) && number == 12));
    CHECK_FALSE(rules::find_number(users, "ali", number));
    CHECK_FALSE(rules::find_number("alice:x:a:\nalice\nalice:\n", "alice", number));
    CHECK_FALSE(rules::parse_number("4294967295", number));
    CHECK_FALSE(rules::parse_number("", number));
    CHECK_FALSE(rules::parse_number("10a", number));
    const std::string map = "         0       1001          1\n         1     100000      65536\n";
    CHECK((rules::map_outside(map, 0, number) && number == 1001));
    CHECK((rules::map_outside(map, 65536, number) && number == 165535));
    CHECK_FALSE(rules::map_outside(map, 65537, number));
    CHECK((rules::map_outside("", 5, number) && number == 5));
}

TEST_CASE("a rule is for a process whose user, groups, cgroup and executable fit, all that it names") {
    Made made;
    CHECK(made.fits(""));
    CHECK(made.fits("user = \"alice\""));
    CHECK(made.fits("user = [\"nobody-knows\", \"" + std::to_string(::getuid()) + "\"]"));
    CHECK_FALSE(made.fits("user = [\"alicia\", \"ali\", \"4000000001\"]"));
    CHECK(made.fits("group = \"students\""));
    CHECK_FALSE(made.fits("group = [\"staff\", \"4000000003\"]"));
    CHECK(made.fits("cgroup = \"/system.slice/slurmstepd.scope/job_*\""));
    CHECK(made.fits("cgroup = [\"/x\", \"/old/job_7\"]"));
    CHECK_FALSE(made.fits("cgroup = \"/job_*\""));
    CHECK(made.fits("executable = \"/usr/bin/python3*\""));
    CHECK_FALSE(made.fits("executable = \"/usr/bin/perl*\""));
    CHECK_FALSE(made.fits("user = \"alice\"\nexecutable = \"/usr/bin/perl*\""));
    CHECK(made.fits("user = \"alice\"\nexecutable = \"/usr/bin/python3*\"\ngroup = \"students\""));
}

TEST_CASE("supplementary groups count as well") {
    if (::geteuid() != 0) return tests::skip("only root can take another group");
    Made made;
    gid_t before[64];
    const int count = ::getgroups(64, before);
    REQUIRE(count >= 0);
    const gid_t own = 4000000002;
    REQUIRE(::setgroups(1, &own) == 0);
    CHECK(made.fits("group = \"staff\""));
    REQUIRE(::setgroups(static_cast<std::size_t>(count), before) == 0);
    CHECK_FALSE(made.fits("group = \"staff\""));
}

TEST_CASE("what can't be told counts against the process: a limit holds, an exemption doesn't") {
    Made made;
    const bool gone = GENERATE(false, true);  // there is no /proc, or it shows namespaces
    const auto change = [&](const std::string& name, const std::string& target) {
        REQUIRE(::unlink((made.folder.path() + "/" + name).c_str()) == 0);
        if (!gone) made.link(name, target);
    };
    change("proc/self/ns/user", "user:[4026532000]");
    CHECK(made.fits("user = \"alicia\""));
    CHECK_FALSE(made.fits("user = \"alicia\"", false));
    CHECK(made.fits("group = \"4000000003\""));
    CHECK_FALSE(made.fits("cgroup = \"/job_*\""));
    change("proc/self/ns/cgroup", "cgroup:[4026532000]");
    CHECK(made.fits("cgroup = \"/job_*\""));
    CHECK_FALSE(made.fits("cgroup = \"/job_*\"", false));
    CHECK_FALSE(made.fits("executable = \"/usr/bin/perl\""));
    REQUIRE(::unlink((made.folder.path() + "/proc/self/exe").c_str()) == 0);
    CHECK(made.fits("executable = \"/usr/bin/perl\""));
    // What is known not to fit decides all the same.
    CHECK(made.fits("user = \"alice\"", false));
}

TEST_CASE("a match says which condition decided, and why it can't be told") {
    using rules::Condition, rules::Doubt;
    rules::Rule rule;
    rules::Identity identity;
    const rules::AccountFiles files{"alice:x:1001:", "students:x:100:"};
    const auto is = [&](bool fits, Condition decided_by, Doubt doubt) {
        const rules::Match found = rules::match(rule, identity, files);
        return found.fits == fits && found.decided_by == decided_by && found.doubt == doubt;
    };
    CHECK(is(true, Condition::none, Doubt::none));
    identity.user = 1001, identity.user_doubt = Doubt::user_namespace;
    identity.groups_doubt = Doubt::too_many;
    identity.cgroups.assign("/s/job_5\n"), identity.cgroups_doubt = Doubt::cgroup_namespace;
    rule.user.add("alice");
    CHECK(is(true, Condition::none, Doubt::none));
    identity.user = 1002;
    CHECK(is(false, Condition::user, Doubt::user_namespace));
    rule.limit_count = 1;
    CHECK(is(true, Condition::user, Doubt::user_namespace));
    // The first that can't be told, but one that doesn't fit before all of those.
    rule.group.add("students");
    rule.cgroup.add("/x");
    CHECK(is(true, Condition::user, Doubt::user_namespace));
    identity.cgroups_doubt = Doubt::none;
    CHECK(is(false, Condition::cgroup, Doubt::none));
    identity.groups_doubt = Doubt::none;
    CHECK(is(false, Condition::group, Doubt::none));
    identity.groups[identity.group_count++] = 100;
    identity.cgroups_doubt = Doubt::cgroup_namespace;
    identity.user = 1001;
    CHECK(is(true, Condition::cgroup, Doubt::cgroup_namespace));
    rule.executable.add("/usr/bin/python3*");
    identity.cgroups.assign("/x/y\n");
    CHECK(is(true, Condition::executable, Doubt::unknown));
    identity.executable.assign("/usr/bin/perl");
    CHECK(is(false, Condition::executable, Doubt::none));
    identity.executable.assign("/usr/bin/python3.11");
    CHECK(is(true, Condition::none, Doubt::none));
}

TEST_CASE("another process is who its files in /proc say") {
    using rules::Doubt;
    Made made;
    const auto other = [&](const std::string& name, const std::string& text) {
        made.folder.write("proc/812/" + name, text);
    };
    const auto read = [&](rules::Identity& identity) {
        Reason why;
        const bool good = rules::read_identity_of(made.folder.path().c_str(), 812, identity, why);
        return good ? std::string() : std::string(why.view());
    };
    {
        rules::Identity gone, ended;
        CHECK(read(gone) == "no such process");
        other("status", "Name:\tUid: 7\nUid:\t1001\t0\t0\t0\nGid:\t100\t0\t0\t0\nGroups:\t4 24 \n");
        CHECK(read(ended) == "it has no executable: it has ended, or is the kernel's own");
    }
    other("cgroup", "4:memory:/old/job_7\n0::/user.slice\n");
    made.link("proc/812/exe", "/opt/other");
    made.link("proc/812/ns/user", "user:[4026531837]");
    made.link("proc/812/ns/cgroup", "cgroup:[4026531835]");
    {
        rules::Identity identity;
        CHECK(read(identity).empty());
        CHECK((identity.user == 1001 && identity.user_doubt == Doubt::none));
        REQUIRE(identity.group_count == 3);
        CHECK((identity.groups[0] == 100 && identity.groups[1] == 4 && identity.groups[2] == 24));
        CHECK(identity.groups_doubt == Doubt::none);
        CHECK(identity.cgroups.view() == "/user.slice\n/old/job_7\n");
        CHECK(identity.cgroups_doubt == Doubt::none);
        CHECK(identity.executable.view() == "/opt/other");
        CHECK_FALSE(identity.elsewhere);
    }
    // The kernel writes numbers for whoever reads them, and paths from where that one's namespace begins.
    made.folder.write("proc/self/uid_map", "1001 4000000001 1\n");
    made.folder.write("proc/self/gid_map", "0 100000 24\n");
    made.link("proc/812/ns/user", "user:[4026532000]");
    made.link("proc/812/ns/cgroup", "cgroup:[4026532000]");
    made.link("proc/812/ns/mnt", "mnt:[4026532000]");
    {
        rules::Identity identity;
        CHECK(read(identity).empty());
        CHECK((identity.user == 4000000001 && identity.user_doubt == Doubt::user_namespace));
        CHECK((identity.groups[0] == 100 && identity.groups[1] == 100004 && identity.groups[2] == 24));
        CHECK(identity.groups_doubt == Doubt::user_namespace);
        CHECK((identity.cgroups.empty() && identity.cgroups_doubt == Doubt::cgroup_namespace));
        CHECK(identity.elsewhere);
    }
    made.link("proc/812/ns/mnt", "mnt:[4026531840]");
    made.link("proc/self/ns/mnt", "mnt:[4026531840]");
    made.link("proc/self/root", "/");
    for (const bool jailed : {false, true}) {
        made.link("proc/812/root", jailed ? "/jail" : "/");
        rules::Identity identity;
        CHECK(read(identity).empty());
        CHECK(identity.elsewhere == jailed);
    }
    std::string many;
    for (int i = 0; i < 256; ++i) many += std::to_string(i) + " ";
    other("status", "Uid:\t1001\nGid:\t7\nGroups:\t" + many + "\n");
    made.link("proc/self/ns/cgroup", "cgroup:[4026532000]");
    {
        rules::Identity identity;
        CHECK(read(identity).empty());
        CHECK((identity.group_count == 1 && identity.groups_doubt == Doubt::too_many));
        CHECK((identity.cgroups.view() == "/user.slice\n/old/job_7\n"));
        CHECK(identity.cgroups_doubt == Doubt::cgroup_namespace);
    }
}

TEST_CASE("this process is the same by its number as by itself") {
    rules::Identity self, numbered;
    Reason why;
    rules::read_identity("", self);
    REQUIRE(rules::read_identity_of("", static_cast<unsigned>(::getpid()), numbered, why));
    CHECK((self.user == numbered.user && self.user_doubt == numbered.user_doubt));
    REQUIRE(self.group_count == numbered.group_count);
    for (std::size_t i = 0; i < self.group_count; ++i) CHECK(self.groups[i] == numbered.groups[i]);
    CHECK(self.groups_doubt == numbered.groups_doubt);
    CHECK(self.cgroups.view() == numbered.cgroups.view());
    CHECK(self.cgroups_doubt == numbered.cgroups_doubt);
    CHECK(self.executable.view() == numbered.executable.view());
    CHECK_FALSE(numbered.elsewhere);
}

TEST_CASE("the numbers of a user namespace are those outside") {
    Made made;
    made.link("proc/self/ns/user", "user:[4026532000]");
    made.folder.write("proc/self/uid_map", std::to_string(::getuid()) + " 4000000001 1\n");
    CHECK(made.fits("user = \"alicia\"", false));
    CHECK_FALSE(made.fits("user = \"alice\"", false));
}

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
        if (settings.shared_rule().empty()) REQUIRE_FALSE(limit);
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
    // Whose slice it is has to be known.
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
    const std::size_t begin = text.find("```toml\n") + 8;
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
    if (::geteuid() != 0) return;
    for (const std::string& one : {path, folder}) {
        REQUIRE(::chown(one.c_str(), 1001, 0) == 0);
        CHECK(made.seen() ==
              "cuslice: " + one + ": belongs to another user than root, so nobody can trust its rules: chown root it");
        REQUIRE(::chown(one.c_str(), 0, 0) == 0);
    }
    CHECK(made.seen().starts_with("4294967296 by rule a"));
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
          "fraction "
          "and gpu.X");
    CHECK(refused(good + "gpu.0.headroom = \"4GiB\"\n") ==
          ":3:7: rule.gpu.0.headroom: 4GiB: a rule's ceiling is a fraction or a limit");
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
