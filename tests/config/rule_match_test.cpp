// SPDX-License-Identifier: Apache-2.0
// For whom a rule is.
#include <grp.h>
#include <unistd.h>

#include "config/rules/accounts.h"
#include "config/rules/glob.h"
#include "config/rules/identity.h"
#include "config/rules/rule.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/config/made_rules.h"
#include "tests/skip.h"

namespace cuslice {

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
    if (!tests::can_be_other_users())
        return;
    Made made;
    gid_t before[64];
    const int count = ::getgroups(64, before);
    REQUIRE(count >= 0);
    const gid_t own = 4000000002;
    if (::setgroups(1, &own) != 0)
        return tests::skip("this user namespace has no such group, or lets nobody take one");
    CHECK(made.fits("group = \"staff\""));
    REQUIRE(::setgroups(static_cast<size_t>(count), before) == 0);
    CHECK_FALSE(made.fits("group = \"staff\""));
}

TEST_CASE("what can't be told counts against the process: a limit holds, an exemption doesn't") {
    Made made;
    const bool gone = GENERATE(false, true);  // there is no /proc, or it shows namespaces
    const auto change = [&](const std::string& name, const std::string& target) {
        REQUIRE(::unlink((made.folder.path() + "/" + name).c_str()) == 0);
        if (!gone)
            made.link(name, target);
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
    // A condition that is known not to fit decides all the same.
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
    for (int i = 0; i < 256; ++i)
        many += std::to_string(i) + " ";
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

TEST_CASE("an executable that was deleted or replaced since is known by the path that it had") {
    Made made;
    const std::string rule = "executable = \"/usr/bin/python3*\"";
    made.link("proc/self/exe", "/usr/bin/python3.11 (deleted)");
    CHECK(made.fits(rule));
    made.link("proc/self/exe", "/usr/bin/python3.11 (deleted) (deleted)");
    CHECK(made.fits("executable = \"/usr/bin/python3.11 (deleted)\""));
    CHECK_FALSE(made.fits("executable = \"/usr/bin/python3.11\""));
    // A file that is called so.
    made.folder.write("opt/python (deleted)", "");
    made.link("proc/self/exe", "/opt/python (deleted)");
    CHECK_FALSE(made.fits("executable = \"/opt/python\""));
    CHECK(made.fits("executable = \"/opt/python (deleted)\""));
    made.folder.write("proc/812/status", "Uid:\t1001\nGid:\t100\n");
    made.link("proc/812/exe", "/usr/bin/perl (deleted)");
    rules::Identity other;
    Reason why;
    REQUIRE(rules::read_identity_of(made.folder.path().c_str(), 812, other, why));
    CHECK(other.executable.view() == "/usr/bin/perl");
}

TEST_CASE("this process is the same by its number as by itself") {
    rules::Identity self, numbered;
    Reason why;
    rules::read_identity("", self);
    REQUIRE(rules::read_identity_of("", static_cast<unsigned>(::getpid()), numbered, why));
    CHECK((self.user == numbered.user && self.user_doubt == numbered.user_doubt));
    REQUIRE(self.group_count == numbered.group_count);
    for (size_t i = 0; i < self.group_count; ++i)
        CHECK(self.groups[i] == numbered.groups[i]);
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

}  // namespace cuslice
