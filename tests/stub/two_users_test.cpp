// SPDX-License-Identifier: Apache-2.0
// The whole story of docs/administrators.md on one machine: cuslice is installed for everybody, bob has a rule and
// wants more than it gives, root's and alice's jobs run beside him, cuslice is exchanged meanwhile, and removed.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "tests/catch.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"
#include "tests/stub/host.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;
using Tenant = std::unique_ptr<Guest>;

constexpr uint64_t kAlone = kGiB, kShared = 2 * kGiB, kJob = 2 * kGiB, kBlock = 32 * kMiB;
// Out of a program's reach in its slice: its headroom, and less than a block.
constexpr uint64_t kLeft = 384 * kMiB;

const char kRules[] = R"([[rule]]
name = "bobs-training"
user = "bob"
executable = "/opt/lab/train*"
limit = "1GiB"

[[rule]]
name = "bob"
user = "bob"
limit = "2GiB"
share = "user"
)";

std::string said(Guest& guest) {
    const Words lines = guest.complaints();
    return lines.empty() ? "" : lines.back();
}

void start_well(Guest& guest) {
    const int started = try_device(guest);
    said(guest);
    INFO(guest.err());
    REQUIRE(started == kSuccess);
}

/// That programs of a user together get all of a limit and no more, with what the user's others hold of it.
void check_fill(const Host& host, unsigned user, const std::vector<Guest*>& programs, uint64_t limit) {
    for (Guest* const program : programs) {
        CHECK(program->code("fill " + bytes(kBlock)) == kOutOfMemory);
        CHECK(host.held_by(user) <= limit);
    }
    CHECK(host.held_by(user) > limit - kLeft);
    for (Guest* const program : programs)
        CHECK(program->code("freeall") == kSuccess);
}

/// A job of root's and a group of alice's, who want to be left alone.
class Others {
  public:
    explicit Others(const Host& host)
        : host_(host),
          job_(host.start(kRoot, joined({"cuslice", "run", "--limit", "2GiB", "--"}, Host::kOpens))),
          first_(member()),
          second_(member()) {
        for (Guest* const one : {job_.get(), first_.get(), second_.get()})
            start_well(*one);
    }
    /// They have their limits still, and whoever comes anew is let in.
    void check() {
        check_fill(host_, kRoot, {job_.get()}, kJob);
        check_fill(host_, kAlice, {first_.get(), second_.get()}, kJob);
        const Tenant job = host_.start(kRoot, joined({"cuslice", "run", "--limit", "1GiB", "--"}, Host::kOpens));
        start_well(*job);
        CHECK(job->code("fill " + bytes(kBlock)) == kOutOfMemory);
        CHECK(books_of(host_.at("/books"), job->pid()).used <= kGiB);
        CHECK(job->finish() == 0);
        const Tenant late = member();
        start_well(*late);
        check_fill(host_, kAlice, {first_.get(), late.get(), second_.get()}, kJob);
        CHECK(late->finish() == 0);
    }
    /// Memory of a killed member is there for the others, whoever looks at its file.
    void check_kill() {
        REQUIRE(second_->code("fill " + bytes(kBlock)) == kOutOfMemory);
        second_->kill(SIGKILL);
        second_ = member();
        start_well(*second_);
        check_fill(host_, kAlice, {first_.get(), second_.get()}, kJob);
    }
    void finish() {
        for (Guest* const one : {job_.get(), first_.get(), second_.get()})
            CHECK(one->finish() == 0);
    }

  private:
    Tenant member() const {
        return host_.start(
            kAlice, joined({"cuslice", "run", "--group", "lab", "--group-limit", "2GiB", "--limit", "2GiB", "--"},
                           Host::kLinked));
    }

    const Host& host_;
    Tenant job_, first_, second_;
};

/// As the page says: a folder of root's for the ledgers, the system's file, and the stub. With rules for bob.
void install(const Host& host) {
    // A line for systemd-tmpfiles, and what it makes of it.
    std::istringstream line(code_of_page("d /run/"));
    std::string kind, folder, mode, user, group;
    line >> kind >> folder >> mode >> user >> group;
    REQUIRE(folder == "/run/cuslice");
    host.done(kRoot, "install -d -m " + mode + " -o " + user + " -g " + group + " " + folder);
    const std::string settings = block_of_page("toml", "dir = \"/run/cuslice\"");
    REQUIRE(settings.find(code_of_page("dir = ")) != settings.npos);
    host.done(kRoot, "cat > /etc/cuslice/cuslice.toml <<'end'\n" + settings + "end\n");
    host.done(kRoot, "cat > /etc/cuslice/rules.d/10-bob.toml <<'end'\n" + std::string(kRules) + "end\n");
    host.done(kRoot, command_of_page("cuslice install --system  "));
    CHECK(read_text(host.at("/etc/ld.so.preload")) == "/usr/lib/cuslice-system/libcuslice-preload.so\n");
}

const std::string kLoginShell = "env -i HOME=/home/bob USER=bob LOGNAME=bob SHELL=/bin/sh ";

/// Ways from a shell of bob's to a program whose words follow, which /opt/lab/on gives nothing but the fake GPU's.
const char* const kWays[] = {
    "exec \"$@\"",
    "exec env -i \"$@\"",
    "exec env -i HOME=/home/bob USER=bob LOGNAME=bob SHELL=/bin/sh sh -l -c '\"$@\"' sh \"$@\"",
    "exec env -i SHELL=/bin/sh PATH=/usr/bin:/bin LOGNAME=bob sh -c '\"$@\"; exit $?' sh \"$@\"",
    "unset LD_PRELOAD CUSLICE_LIMIT CUSLICE_SETTINGS; sh -c '\"$@\"; exit $?' sh \"$@\"",
    "exec setsid --wait env -i \"$@\"",
    "exec /opt/lab/static exec \"$@\"",
    "exec /opt/lab/static fork \"$@\"",
    "exec python3 -c 'import os, sys; os.environ.clear(); os.execv(sys.argv[1], sys.argv[1:])' \"$@\"",
    "exec python3 -c 'import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], env={}).returncode)' \"$@\"",
};

Words by_way(const std::string& way, const Words& program) {
    return joined({"/bin/sh", "-c", way, "sh", "/opt/lab/on"}, program);
}

std::string loader() {
    for (const char* path : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"})
        if (fs::exists(path))
            return path;
    return "";
}

/// Two programs of bob's, of which one is there already, have 2 GiB together.
void check_shares(const Host& host, Guest& holder, Guest& other) {
    start_well(other);
    CHECK(other.number("total 0") == kShared);
    check_fill(host, kBob, {&other}, kShared);
    check_fill(host, kBob, {&holder, &other}, kShared);
    CHECK(other.finish() == 0);
}

void check_rules(const Host& host) {
    const Tenant holder = host.start(kBob, Host::kOpens);
    start_well(*holder);
    REQUIRE(holder->code("alloc some " + bytes(320 * kMiB)) == kSuccess);
    std::vector<Words> commands;
    for (const std::string way : kWays) {
        if (way.find("python3") != way.npos && !host.has_python())
            continue;
        for (const Words& program : {Host::kOpens, Host::kLinked})
            commands.push_back(by_way(way, program));
    }
    for (const Words& program : {Host::kOpens, Host::kLinked})
        commands.push_back(by_way("exec \"$@\"", joined({loader()}, program)));
    if (host.has_python())
        commands.push_back(by_way("exec env -i \"$@\"", Host::kPython));
    for (const Words& command : commands) {
        CAPTURE(command);
        const Tenant other = host.start(kBob, command);
        check_shares(host, *holder, *other);
    }
    for (const char* way : {"su bob -c", "su -l bob -c"}) {
        CAPTURE(way);
        if (host.shell(kRoot, std::string(way) + " true").exit_code != 0) {
            skip("there is no su here, or it doesn't work in a namespace");
            continue;
        }
        const Tenant other =
            host.start(kRoot, {"/bin/sh", "-c", std::string(way) + " 'exec /opt/lab/on /opt/lab/guest_linked linked'"});
        check_shares(host, *holder, *other);
    }
    CHECK(holder->finish() == 0);

    // The rule without `share` is for each program by itself.
    host.done(kRoot, "cp /opt/lab/guest /opt/lab/train");
    const Words training{"/opt/lab/train", "dlopen=libcuda.so.1"};
    const Tenant one = host.start(kBob, training), two = host.start(kBob, training);
    for (Guest* const each : {one.get(), two.get()}) {
        start_well(*each);
        CHECK(each->number("total 0") == kAlone);
        CHECK(each->code("fill " + bytes(kBlock)) == kOutOfMemory);
        CHECK(books_of(host.at("/books"), each->pid()).used <= kAlone);
        CHECK(books_of(host.at("/books"), each->pid()).used > kAlone - kLeft);
    }
    for (Guest* const each : {one.get(), two.get()})
        CHECK(each->finish() == 0);
    // And nobody else has the rules of bob's.
    const Tenant free = host.start(kCarol, Host::kLinked);
    start_well(*free);
    CHECK(free->number("total 0") > kShared);
    CHECK(free->finish() == 0);
}

/// Services that root starts in a slice: one gives its rights up before it becomes a program of bob's, the other one
/// while it runs.
void check_services(const Host& host, Others& others) {
    if (!host.has_python())
        return;
    const Words before{"cuslice", "run", "--limit", "1GiB", "--"};
    const Words dropped{"setpriv", "--reuid", std::to_string(kBob), "--regid", std::to_string(kBob), "--clear-groups"};
    // Its job is root's, whose ledger bob can't be in: it has no other limit in that one's place.
    const Tenant became = host.start(kRoot, joined(joined(before, dropped), Host::kPython));
    CHECK(became->code("damage") == 0);
    CHECK(try_device(*became) != kSuccess);
    CHECK(said(*became).find("the launcher is another user") != std::string::npos);
    CHECK(host.held_by(kBob) == 0);
    CHECK(became->code("damage") == 0);
    others.check();
    CHECK(became->finish() == 0);
    const Tenant launched = host.start(kRoot, joined(joined(dropped, before), Host::kPython));
    start_well(*launched);
    CHECK(launched->number("total 0") == kGiB);
    check_fill(host, kBob, {launched.get()}, kGiB);
    CHECK(launched->code("damage") == 0);
    CHECK(launched->finish() == 0);

    const Tenant service = host.start(kRoot, joined(before, Host::kPython));
    start_well(*service);
    REQUIRE(service->code("drop " + std::to_string(kBob)) == 0);
    CHECK(service->code("damage") == 0);
    CHECK(service->code("fill " + bytes(kBlock)) == kOutOfMemory);
    const uint64_t used = books_of(host.at("/books"), service->pid()).used;
    CHECK(used <= kGiB);
    CHECK(used > kGiB - kLeft);
    CHECK(service->code("freeall") == kSuccess);
    others.check();
    CHECK(service->finish() == 0);
}

/// A program of bob's that wants more, where another one has a part of his slice: it gets the rest of it, or nothing.
void check_no_more(const Host& host, const Words& command, const Words& more, bool starts) {
    CAPTURE(command, more);
    const Tenant tenant = host.start(kBob, command, more);
    const int started = try_device(*tenant);
    INFO(said(*tenant));
    CHECK((started == kSuccess) == starts);
    if (started == kSuccess) {
        CHECK(tenant->number("total 0") == kShared);
        check_fill(host, kBob, {tenant.get()}, kShared);
    }
    tenant->finish();
}

void attack_by_environment(const Host& host) {
    const std::string libraries = fs::path(CUSLICE_TEST_FORGED).parent_path();
    for (const char* name : {"marker", "entrance", "start"})
        fs::copy_file(CUSLICE_TEST_FORGED + std::string(name) + ".so",
                      host.at("/home/bob/" + std::string(name) + ".so"));
    host.done(kBob,
              "cd; mkdir -p .config/cuslice gpu other/.config/cuslice; cp /opt/gpu/libcuda.so.1 gpu/;"
              " printf '[memory]\\nlimit = \"12GiB\"\\n' | tee cuslice.toml > .config/cuslice/cuslice.toml;"
              " printf 'dir = \"/tmp/bob\"\\n' > other/.config/cuslice/cuslice.toml");
    const std::vector<Words> heeded{
        {"CUSLICE_LIMIT=12GiB"},
        {"CUSLICE_SETTINGS=1;flag.0 limit * 12GiB --limit"},
        {"CUSLICE_SETTINGS=1;system-file.0 ceiling.limit * 12GiB ceiling"},
        {"CUSLICE_CONFIG=/home/bob/cuslice.toml"},
        {"CUSLICE_PER_PROCESS=yes", "CUSLICE_FRACTION=1"},
        {"CUSLICE_STUB=1"},
        {"LD_PRELOAD=libc.so.6"},
        {"LD_PRELOAD=libdl.so.2 libc.so.6"},
        {"LD_PRELOAD=/home/bob/marker.so"},
        {"LD_LIBRARY_PATH=/home/bob/gpu"},
        {"XDG_CONFIG_HOME=/none", "HOME=/"},
    };
    const Tenant holder = host.start(kBob, Host::kOpens);
    start_well(*holder);
    REQUIRE(holder->code("alloc some " + bytes(320 * kMiB)) == kSuccess);
    for (const Words& program : {Host::kOpens, Host::kLinked}) {
        const bool opens = program == Host::kOpens;
        for (const Words& more : heeded)
            check_no_more(host, program, more, true);
        // Where the ledger can't be that of the system, there is no slice at all.
        check_no_more(host, program, {"CUSLICE_DIR=/tmp/bob"}, false);
        check_no_more(host, program, {"HOME=/home/bob/other"}, false);
        // One that is linked, marked, and without the library is ended.
        for (const char* mark : {"$$ n x", "$$ l x", "$$ n /opt/lab/guest_linked"}) {
            const std::string marked = "CUSLICE_STUB=\"" + std::string(mark) + "\" exec \"$@\"";
            check_no_more(host, joined({"/bin/sh", "-c", marked, "sh"}, program), {}, opens);
        }
        check_no_more(host, joined({loader(), "--preload", "libc.so.6"}, program), {}, !opens);
    }
    CHECK(holder->finish() == 0);
}

/// Programs with more rights that are linked to the driver get no GPU, whoever starts them.
void attack_by_rights(const Host& host) {
    for (const char* rights : {"4755", "2755", "6755"}) {
        CAPTURE(rights);
        host.done(kRoot, "cp /opt/lab/guest_linked /opt/lab/rights; chmod " + std::string(rights) + " /opt/lab/rights");
        for (const char* way : {"", "env -i /opt/lab/on ", "env LD_PRELOAD=libc.so.6 ", "env CUSLICE_STUB=1 "})
            CHECK(host.shell(kBob, "exec " + std::string(way) + "/opt/lab/rights linked < /dev/null").exit_code == 127);
    }
}

void attack_by_locks(const Host& host, Others& others) {
    const Tenant bob = host.start(kBob, Host::kPython);
    CHECK(bob->code("hold") > 0);
    others.check();
    others.check_kill();
    CHECK(bob->code("hold") > 0);  // of whoever came meanwhile
    others.check();
    Words answer = split_words(bob->ask("write-over"));
    REQUIRE(answer.size() == 2);
    CHECK(answer[0] == std::to_string(kSuccess));
    CHECK(std::stoi(answer[1]) > 0);
    others.check();
    bob->finish();
}

void attack_by_names(const Host& host, Others& others) {
    // Carol has never had a ledger. Its name is as alice's, but for her number.
    const std::string names = "cd /run/cuslice; own=$(ls | grep '^" + std::to_string(kAlice) +
                              "-GPU.*ledger$' | head -1); first=" + std::to_string(kCarol) + "${own#" +
                              std::to_string(kAlice) + "}; begin=${first%.ledger}; ";
    host.done(kBob, names +
                        "echo x > $first; mkfifo $begin-1.ledger; mkdir $begin-2.ledger; ln -s $own $begin-3.ledger;"
                        " cp $own $begin-4.ledger");
    const Words member =
        joined({"cuslice", "run", "--group", "own", "--group-limit", "1GiB", "--limit", "1GiB", "--"}, Host::kOpens);
    const Tenant one = host.start(kCarol, member), two = host.start(kCarol, member);
    for (Guest* const each : {one.get(), two.get()})
        start_well(*each);
    check_fill(host, kCarol, {one.get(), two.get()}, kGiB);

    host.done(kBob, names + "i=0; while [ $i -lt 3000 ]; do : > $((70000 + i))${own#" + std::to_string(kAlice) +
                        "}; : > " + std::to_string(kAlice) +
                        "-$(printf %016x $i).alive; : > $begin-x$i; i=$((i + 1)); done");
    others.check();
    check_fill(host, kCarol, {one.get(), two.get()}, kGiB);
    const Tenant late = host.start(kCarol, member);
    start_well(*late);
    check_fill(host, kCarol, {one.get(), late.get()}, kGiB);
    for (Guest* const each : {one.get(), two.get(), late.get()})
        CHECK(each->finish() == 0);
    host.done(kBob, "cd /run/cuslice; find . -user bob ! -name '" + std::to_string(kBob) + "-*' -exec rm -r {} +");
}

/// A ledger of his own that says anything: others are let in, and have all that is theirs. His programs can be parted
/// by it, as he may write what he likes there (docs/rules.md); then each has the rule's limit by itself.
void attack_by_forging(const Host& host, Others& others) {
    const Tenant writer = host.start(kBob, Host::kPython);
    for (const std::string kind : {"ones", "zeros", "claims", "copied"}) {
        CAPTURE(kind);
        const Tenant one = host.start(kBob, Host::kOpens), two = host.start(kBob, Host::kLinked);
        start_well(*one);
        REQUIRE(one->code("alloc some " + bytes(320 * kMiB)) == kSuccess);
        CHECK(writer->code("forge " + kind) > 0);
        others.check();
        try_device(*two);  // which may be refused
        for (Guest* const each : {one.get(), two.get()}) {
            each->let_change("free", "who is refused looks for the ledger, and finds who else is in it");
            each->code("fill " + bytes(kBlock));
            CHECK(books_of(host.at("/books"), each->pid()).used <= kShared);
        }
        others.check();
        for (Guest* const each : {one.get(), two.get()})
            each->finish();
    }
    writer->finish();
}

/// As where sudo leaves HOME: root's programs take no code and no files of bob's.
void attack_by_home(const Host& host) {
    for (const std::string line : {"driver = \"/home/bob/marker.so\"", "record = \"/root/recording\"",
                                   "log = \"info:/root/log\"", "dir = \"/home/bob\""}) {
        CAPTURE(line);
        host.done(kBob, "echo '" + line + "' > ~/.config/cuslice/cuslice.toml");
        const Tenant program = host.start(kRoot, Host::kOpens, {"HOME=/home/bob"});
        CHECK(program->code("init") > kSuccess);
        CHECK(said(*program).find("is not taken from a file that another user can write") != std::string::npos);
        program->finish();
        const Outcome run = host.shell(kRoot, "HOME=/home/bob exec cuslice run -- true");
        CHECK(run.exit_code == 78);
    }
    host.done(kRoot, "test ! -e /root/recording -a ! -e /root/log");
    host.done(kBob, "rm ~/.config/cuslice/cuslice.toml");
}

void attack_by_installation(const Host& host) {
    const std::string before = read_text(host.at("/etc/ld.so.preload"));
    host.done(kBob, "cp -r /opt/cuslice ~/cuslice");
    for (const char* name : {"/home/bob/cuslice", "/opt/link"}) {
        CAPTURE(name);
        if (std::string(name) == "/opt/link")
            host.done(kRoot, "ln -s /home/bob/cuslice /opt/link");
        const Outcome outcome = host.shell(kRoot, "exec " + std::string(name) + "/bin/cuslice install --system");
        CHECK(outcome.exit_code == 78);
        CHECK(outcome.err.starts_with("cuslice: /home/bob"));
    }
    CHECK(read_text(host.at("/etc/ld.so.preload")) == before);
    CHECK(fs::read_symlink(host.at("/usr/lib/cuslice-system/library")) == "/opt/cuslice/lib/cuslice");
    host.done(kRoot, "rm /opt/link");
}

/// Another copy takes the installation's place file by file, as packages do it, while jobs run.
void check_upgrade(const Host& host, Others& others) {
    const Tenant bob = host.start(kBob, Host::kOpens);
    start_well(*bob);
    REQUIRE(bob->code("alloc some " + bytes(320 * kMiB)) == kSuccess);
    const Words training{"/opt/lab/train", "dlopen=libcuda.so.1"};
    const Tenant early = host.start(kBob, training);  // that comes to CUDA afterwards
    REQUIRE(early->pid() > 0);

    host.done(kRoot,
              "cd /opt; find cuslice lab/train -type f | while read file; do"
              " cp -p $file $file.dpkg-new; echo >> $file.dpkg-new; mv $file.dpkg-new $file; done");
    host.done(kRoot, command_of_page("cuslice install --system  "));
    CHECK(read_text(host.at("/usr/lib/cuslice-system/libcuslice-preload.so")) ==
          read_text(host.at("/opt/cuslice/lib/cuslice/libcuslice-preload.so")));

    const Tenant late = host.start(kBob, training);
    for (Guest* const each : {early.get(), late.get()}) {
        start_well(*each);
        CHECK(each->number("total 0") == kAlone);
        CHECK(each->code("fill " + bytes(kBlock)) == kOutOfMemory);
        CHECK(books_of(host.at("/books"), each->pid()).used <= kAlone);
        CHECK(each->finish() == 0);
    }
    for (const Words& program : {Host::kOpens, Host::kLinked}) {
        const Tenant other = host.start(kBob, program);
        check_shares(host, *bob, *other);
    }
    others.check();
    CHECK(bob->finish() == 0);
}

}  // namespace

TEST_CASE("two users share a machine as the page for administrators tells it, and one of them wants more", "[slow]") {
    Host host;
    if (!host.possible())
        return;
    const auto before = host.files();
    install(host);
    check_rules(host);

    Others others(host);
    others.check();
    check_services(host, others);
    attack_by_environment(host);
    attack_by_rights(host);
    if (host.has_python()) {
        attack_by_locks(host, others);
        attack_by_names(host, others);
        attack_by_forging(host, others);
    }
    attack_by_home(host);
    attack_by_installation(host);
    others.check();
    check_upgrade(host, others);
    others.finish();

    REQUIRE(code_of_page("cuslice uninstall --system") == "cuslice uninstall --system");
    host.done(kRoot, "cuslice uninstall --system");
    host.done(kRoot, "rm -r /opt/cuslice/lib/cuslice /opt/cuslice/bin /etc/cuslice/* /home/*/* /home/bob/.config");
    host.done(kRoot, "mkdir /etc/cuslice/rules.d");
    auto after = host.files();
    for (const auto& [name, text] : before) {
        CAPTURE(name);
        if (!name.starts_with("/opt/"))
            CHECK(after.count(name) == 1);
        if (!name.starts_with("/opt/"))
            CHECK((after[name] == text));
    }
    for (const auto& [name, text] : after) {
        CAPTURE(name);
        CHECK((before.count(name) == 1 || name.starts_with("/opt/lab/")));
    }
    for (const Words& program : {Host::kOpens, Host::kLinked}) {
        const Tenant tenant = host.start(kBob, program);
        start_well(*tenant);
        CHECK(tenant->number("total 0") > 8 * kGiB);
        CHECK(tenant->finish() == 0);
        CHECK(tenant->err().empty());
    }
}

}  // namespace cuslice::tests
