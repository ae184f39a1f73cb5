// SPDX-License-Identifier: Apache-2.0
// `cuslice top --nodes`, over an ssh and an srun of the tests' own: each node is a folder of ledgers, and what runs
// there goes through a shell, as ssh has it.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "cli/text/json.h"
#include "cli/top/node_names.h"
#include "cli/top/snapshot.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/made_up_job.h"
#include "tests/cli/terminal.h"
#include "tests/cli/tree.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size())
        ++found;
    return found;
}

std::string without_blanks(std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
}

// The common part of the two scripts: $node is the node that is asked, and the words are what runs there.
constexpr const char* kThere = R"(
echo $$ >"$cluster/pid-$node"
mkdir -p "$cluster/$node"
case $node in
    hangs) sleep 1000 & wait ;;
    stubborn) trap '' TERM; sleep 1000 & wait; wait ;;
    refused) echo 'ssh: connect to host refused port 22: Connection refused' >&2; exit 255 ;;
    silent) exit 255 ;;
    killed) kill -9 $$ ;;
    escape) printf 'so: \033]0;owned\007\302\233x\033[2J' >&2; exit 255 ;;
    garbage) printf '\033[2J\033]0;owned\007 no answer\n'; exit 0 ;;
    huge) yes 'no answer' ;;
    endless) printf '{"version": 1, "gpus": ['; yes '{' | tr -d '\n' ;;
    deep) printf '{"version": '; yes '[' | head -c 100000 | tr -d '\n'; echo; exit 0 ;;
    newer) echo '{"version": 2, "machines": []}'; exit 0 ;;
    old) echo 'cuslice: --stream: no such option' >&2; exit 64 ;;
    noise) cat "$cluster/noise"; yes 'no answer' | head -c 1000000 >&2; echo 'the last line' >&2; exit 1 ;;
    greets) echo 'Welcome to greets'; echo ;;
    ends) PATH=$bin:$PATH CUSLICE_DIR=$cluster/$node sh -c "$*" | head -n 1; exit 0 ;;
    missing) echo 'bash: line 1: cuslice: command not found' >&2; exit 127 ;;
esac
PATH=$bin:$PATH CUSLICE_DIR=$cluster/$node exec sh -c "$*"
)";

// As in a script for a shell: `ssh -options NODE words`.
constexpr const char* kSsh = R"(
while case $1 in -p) shift ;; -*) ;; *) false ;; esac; do shift; done
node=$1; shift
)";
// `srun -options -w NODE words`.
constexpr const char* kSrun = R"(
while [ "$1" != -w ]; do shift; done
node=$2; shift 2
)";

class Cluster {
  public:
    Cluster() {
        const std::string places = "cluster=" + folder_.path() + " bin=" + folder_.path() + "/there\n";
        for (const auto& [name, options] : {std::pair("ssh", kSsh), std::pair("srun", kSrun)})
            folder_.write(std::string("here/") + name,
                          "#!/bin/sh\n" + places + "echo " + name + " \"$@\" >>$cluster/asked\n" + options + kThere,
                          0755);
        folder_.write("there/empty", "");
        std::filesystem::create_symlink(kLauncher, folder_.path() + "/there/cuslice");
    }

    Words environment(const Words& more = {}) const {
        Words lines = plain_environment("/nowhere");
        lines[0] = "PATH=" + folder_.path() + "/here:/usr/bin:/bin";
        return with(lines, more);
    }
    Outcome top(const Words& options, const Words& more = {}) const {
        return run(with({kLauncher, "top"}, options), environment(more));
    }
    Terminal view(const Words& options, unsigned rows = 40, unsigned columns = 100) const {
        return Terminal(with({kLauncher, "top"}, options), environment({"TERM=xterm-256color", "LANG=C.UTF-8"}), rows,
                        columns);
    }
    std::string asked() const { return read_text(folder_.path() + "/asked"); }
    // The process that has asked this node; 0 if none has.
    int pid_of(const std::string& node) const { return std::atoi(read_text(folder_.path() + "/pid-" + node).c_str()); }
    bool is_gone(const std::string& node) const { return pid_of(node) > 0 && ::kill(-pid_of(node), 0) != 0; }
    void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
    std::string node(const std::string& name) const {
        const std::string path = folder_.path() + "/" + name;
        std::filesystem::create_directory(path);
        return path;
    }

  private:
    Folder folder_;
};

std::vector<std::string> nodes_of(const std::string& list) {
    std::vector<std::string> nodes;
    std::string error;
    if (!cli::top::parse_nodes(list, nodes, error))
        return {"refused: " + error};
    return nodes;
}

// However long a busy machine takes.
const Words kFake = {"--fake=2xstub", "--timeout=1h"};

}  // namespace

TEST_CASE("a list of nodes is what Slurm writes") {
    CHECK(nodes_of("n1") == Words{"n1"});
    CHECK(nodes_of("n1,login.example.org,n1") == Words{"n1", "login.example.org"});
    CHECK(nodes_of("gpu[08-10,7],a") == Words{"gpu08", "gpu09", "gpu10", "gpu7", "a"});
    CHECK(nodes_of("r[1-2]n[1-2]x") == Words{"r1n1x", "r1n2x", "r2n1x", "r2n2x"});
    CHECK(nodes_of("alice@n1,fe80::1%eth0") == Words{"alice@n1", "fe80::1%eth0"});
    CHECK(nodes_of("n[1-256]").size() == 256);
    CHECK(nodes_of("n[1-257]") == Words{"refused: more than 256 nodes: these can't all be asked at once"});
    CHECK(nodes_of("n[1-2") == Words{"refused: n[1-2: a bracket is not closed"});
    for (const char* bad :
         {"", "n1,", ",n1", "n1,,n2", "n[2-1]", "n[]", "n[a]", "n[1-9999999999]", "-n1", "n1,-oProxyCommand=x",
          "alice@-oX", "n1 n2", "$(x)", "n;x", "n1\n", "n]", "[-1]", "n\xc3\xa4"}) {
        CAPTURE(bad);
        CHECK(nodes_of(bad)[0].starts_with("refused: "));
    }
}

TEST_CASE("top --nodes shows each node's GPUs and jobs in one frame, in one document, and over ssh") {
    const CalledSo hostile("\x1b]0;owned\x07x");
    const Cluster cluster;
    const Job first(cluster.node("n1"), "python"), second(cluster.node("n2"), "\x1b]0;owned\x07x");
    const Outcome frame = cluster.top(with(kFake, {"--nodes", "n[1-2],greets", "--once"}));
    CHECK(frame.exit_code == 0);
    CHECK(frame.err.empty());
    CHECK(frame.out.starts_with("cuslice top: 3 nodes, 6 GPUs, 2 jobs\n\n-- n1 ---"));
    CHECK(contains(frame.out, "-- n2 -"));
    CHECK(contains(frame.out, " 2 GPUs, 1 job\nGPU 0  Stub \"0\""));
    CHECK(contains(frame.out, " 2 GPUs, 0 jobs\n"));
    CHECK(count(frame.out, "\\x1b]0;owned\\x07x") == 2);  // what the jobs' process calls itself
    CHECK_FALSE(contains(frame.out, "\x1b"));
    // Each once, with the options that are to hold there, and nothing that could ask or listen here.
    CHECK(count(cluster.asked(), "\n") == 3);
    CHECK(contains(cluster.asked(),
                   "ssh -xT -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=10 "
                   "-oClearAllForwardings=yes n1 cuslice top --json --fake=2xstub\n"));

    const Outcome json = cluster.top(with(kFake, {"--nodes=n1,n2", "--json"}));
    CHECK(json.exit_code == 0);
    const cli::Json document = cli::Json::parse(json.out);
    CHECK(document["version"] == 1);
    REQUIRE(document["nodes"].size() == 2);
    for (int i = 0; i < 2; ++i) {
        const cli::Json& node = document["nodes"][static_cast<size_t>(i)];
        CHECK(node["node"] == (i == 0 ? "n1" : "n2"));
        CHECK(node["failure"].is_null());
        CHECK(node["gpus_failure"].is_null());
        CHECK(node["gpus"].size() == 2);
        REQUIRE(node["processes"].size() == 1);
        CHECK(node["processes"][0]["used"] == 256 * kMiB);
        CHECK(node["processes"][0]["command_line"].is_array());
        CHECK(node["processes"][0]["fake"] == false);
    }
    CHECK(document["nodes"][1]["processes"][0]["command"] == "\x1b]0;owned\x07x");
    CHECK(std::all_of(json.out.begin(), json.out.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST_CASE("top --nodes says of each node that doesn't answer why, shows the others, and exits 69") {
    const Cluster cluster;
    constexpr struct {
        const char* node;
        const char* reason;
    } kReasons[] = {
        {"refused", "ssh: connect to host refused port 22: Connection refused"},
        {"silent", "ssh exited with 255"},
        {"killed", "ssh was ended by signal 9"},
        {"escape", "so: \\x1b]0;owned\\x07\\xc2\\x9bx\\x1b[2J"},
        {"garbage", "it says: \\x1b[2J\\x1b]0;owned\\x07 no answer"},
        {"huge", "it says: no answer"},
        {"endless", "its answer is longer than 16 MiB"},
        {"deep", "its answer is not one that this cuslice reads; another version may be there"},
        {"newer", "its answer is not one that this cuslice reads; another version may be there"},
        {"old", "another cuslice is there, an older one: cuslice: --stream: no such option"},
        {"missing", "bash: line 1: cuslice: command not found (--launcher PATH names it there)"},
        {"noise", "the last line"},
    };
    cluster.write("noise", "\n\n");
    std::string list = "good";
    for (const auto& one : kReasons)
        list += std::string(",") + one.node;
    const Outcome frame = cluster.top(with(kFake, {"--once", "--nodes", list}));
    const Outcome json = cluster.top(with(kFake, {"--json", "--nodes", list}));
    CHECK(json.exit_code == 69);
    CHECK(frame.exit_code == 69);
    CHECK(frame.err.empty());  // all of it is in the frame
    CHECK(frame.out.starts_with("cuslice top: 13 nodes (12 without an answer), 2 GPUs, 0 jobs\n"));
    CHECK(contains(frame.out, "-- good -"));
    CHECK(contains(frame.out, "GPU 1  Stub \"1\""));
    for (const auto& [node, reason] : kReasons) {
        INFO(node);
        CHECK(contains(json.err, "cuslice: top: " + std::string(node) + ": " + reason + "\n"));
        // A frame goes on in the next line where it isn't wide enough.
        std::string joined = frame.out.substr(frame.out.find("-- " + std::string(node) + " "));
        joined.erase(0, joined.find("\n  No answer: ") + 1);
        CHECK(without_blanks(joined).starts_with(without_blanks("No answer: " + std::string(reason))));
        CHECK(soon([&] { return cluster.is_gone(node); }));
    }
    CHECK_FALSE(contains(frame.out + frame.err, "\x1b"));
    CHECK_FALSE(contains(frame.out + frame.err, "\xc2\x9b"));
    size_t width = 0;
    for (const char c : frame.out) {
        width = c == '\n' ? 0 : width + 1;
        REQUIRE(width <= 80);
    }
    CHECK_FALSE(contains(json.err, "\x1b"));
    const cli::Json document = cli::Json::parse(json.out);
    REQUIRE(document["nodes"].size() == 13);
    CHECK(document["nodes"][0]["failure"].is_null());
    CHECK(document["nodes"][1]["failure"] == kReasons[0].reason);
    CHECK(document["nodes"][1]["gpus"].empty());
    CHECK_FALSE(contains(json.out, "\x1b"));
    CHECK_FALSE(contains(json.out, "\xc2\x9b"));
}

TEST_CASE("top --nodes waits for a node for --timeout, and leaves nothing behind of one that hangs") {
    const Cluster cluster;
    const Outcome outcome = cluster.top({"--once", "--nodes", "hangs,stubborn", "--timeout=1s"});
    CHECK(outcome.exit_code == 69);
    CHECK(contains(outcome.out, "-- hangs ---"));
    CHECK(contains(outcome.out, "-- stubborn ---"));
    CHECK(count(outcome.out, "  No answer: timed out after 1 s\n") == 2);
    CHECK(soon([&] { return cluster.is_gone("hangs") && cluster.is_gone("stubborn"); }));
}

TEST_CASE("top --nodes in a terminal: one that hangs keeps nobody waiting, and no ssh stays behind, however it ends") {
    const CalledSo name("python");
    const Cluster cluster;
    const Job job(cluster.node("n1"), "python");
    Terminal terminal = cluster.view(with(kFake, {"--nodes", "hangs,stubborn,n1,escape", "--interval=100ms"}));
    CHECK(terminal.shows("4 nodes (1 without an answer), 2 GPUs, 1 job"));
    CHECK(terminal.shows("── hangs ──"));
    CHECK(terminal.shows("Asking ..."));
    CHECK(terminal.shows(" python "));
    CHECK(terminal.shows("so: \\x1b]0;owned\\x07"));
    CHECK_FALSE(contains(terminal.printed(), "\x1b]"));
    CHECK_FALSE(contains(terminal.printed(), "\xc2\x9b"));
    const Job another(cluster.node("n1"), "and-another");
    CHECK(terminal.shows("2 processes"));  // the same answer goes on
    CHECK(count(cluster.asked(), " n1 cuslice top --stream --interval=100ms --fake=2xstub\n") == 1);
    // With the stubborn one, to which SIGTERM says nothing.
    CHECK(soon([&] { return cluster.pid_of("hangs") > 0 && cluster.pid_of("stubborn") > 0; }));
    SECTION("q") {
        terminal.type("q");
        CHECK(terminal.status() == 0);
    }
    SECTION("Ctrl-C") {
        terminal.type("\x03");
        CHECK(WTERMSIG(terminal.status()) == SIGINT);
    }
    SECTION("SIGTERM") {
        ::kill(terminal.pid(), SIGTERM);
        CHECK(WTERMSIG(terminal.status()) == SIGTERM);
    }
    for (const char* node : {"hangs", "stubborn", "n1", "escape"}) {
        INFO(node);
        CHECK(soon([&] { return cluster.is_gone(node); }));
    }
}

TEST_CASE("top --nodes --once ends its commands before a signal ends it, and SIGKILL ends them too") {
    const Cluster cluster;
    const int signal = GENERATE(SIGINT, SIGTERM, SIGKILL);
    CAPTURE(signal);
    Terminal terminal = cluster.view({"--nodes=n1,hangs", "--once", "--timeout=1h"});
    REQUIRE(soon([&] { return cluster.pid_of("hangs") > 0; }));
    ::kill(terminal.pid(), signal);
    CHECK(WTERMSIG(terminal.status()) == signal);
    CHECK(soon([&] { return ::kill(cluster.pid_of("hangs"), 0) != 0; }));
    // After SIGKILL the kernel ends the command alone, and not the command's own children.
    if (signal == SIGKILL)
        ::kill(-cluster.pid_of("hangs"), SIGKILL);
}

TEST_CASE("top --nodes shows that a stream has ended, and asks again") {
    const Cluster cluster;
    Terminal terminal = cluster.view(with(kFake, {"--nodes=ends", "--interval=100ms"}));
    CHECK(terminal.shows("1 node, 2 GPUs"));
    CHECK(terminal.shows("1 node (1 without an answer), 0 GPUs"));
    CHECK(terminal.shows("No answer: ssh exited with 0"));
    CHECK(terminal.shows("1 node, 2 GPUs"));
    CHECK(count(cluster.asked(), "\n") >= 2);
    terminal.type("q");
    CHECK(terminal.status() == 0);
}

TEST_CASE("top --nodes @slurm asks the nodes of the job by srun") {
    const Cluster cluster;
    const Outcome outcome =
        cluster.top(with(kFake, {"--nodes=@slurm", "--once"}), {"SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_ID=7"});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.starts_with("cuslice top: 2 nodes, 4 GPUs, 0 jobs\n"));
    CHECK(contains(cluster.asked(),
                   "srun -Q --overlap --input=none --mpi=none --cpu-bind=none -N1 -n1 -c1 "
                   "--ntasks-per-node=1 -w n1 cuslice top --json --fake=2xstub\n"));
    const Outcome outside = cluster.top({"--nodes=@slurm"});
    CHECK(outside.exit_code == 64);
    CHECK(outside.err == "cuslice: --nodes: @slurm: this is not in a job of Slurm (SLURM_JOB_NODELIST is not set)\n");
}

TEST_CASE("top --nodes: another command, another launcher, and no shell that reads a word of them here") {
    const Cluster cluster;
    const Outcome outcome = cluster.top(with(
        kFake, {"--nodes=n1", "--once", "--launcher", kLauncher, "--over", "ssh -p 2222  -oHostName={}.example  {}"}));
    CHECK(outcome.exit_code == 0);
    CHECK(contains(cluster.asked(), "ssh -p 2222 -oHostName=n1.example n1 " + kLauncher + " top --json"));
    const Outcome words = cluster.top({"--nodes=n1", "--once", "--over", "echo $HOME ; touch /nowhere/x #"});
    CHECK(contains(words.out, "  No answer: it says: $HOME ; touch /nowhere/x # n1 cuslice top --json\n"));
    const Outcome missing = cluster.top({"--nodes=n1", "--once", "--over=no-such-program"});
    CHECK(contains(missing.out, "  No answer: no-such-program can't be started here: No such file or directory\n"));
    CHECK(missing.exit_code == 69);
    for (const Words& bad :
         {Words{"--nodes=n1;x"}, Words{"--nodes=-oProxyCommand=x"}, Words{"--nodes="}, Words{"--nodes"},
          Words{"--nodes=n1", "--launcher=cuslice;x"}, Words{"--nodes=n1", "--launcher=-x"},
          Words{"--nodes=n1", "--dir=/a b"}, Words{"--nodes=n1", "--over={} x"}, Words{"--nodes=n1", "--over= "},
          Words{"--nodes=n1", "--stream"}, Words{"--over=ssh"}, Words{"--launcher=x"}, Words{"--timeout=1s"},
          Words{"--nodes=n1", "--timeout=1"}, Words{"--stream", "--json"}, Words{"--stream", "--once"},
          Words{"--stream=x"}}) {
        const std::string asked = cluster.asked();
        const Outcome refused = cluster.top(bad);
        CAPTURE(bad, refused.err);
        CHECK(refused.exit_code == 64);
        CHECK(count(refused.err, "\n") == 1);
        CHECK(refused.out.empty());
        CHECK(cluster.asked() == asked);
    }
}

TEST_CASE("top --stream prints a document a line, until nobody reads it") {
    const Cluster cluster;
    const Job job(cluster.node("here"), "python");
    const Outcome outcome =
        run({"/bin/sh", "-c", kLauncher + " top --fake=2xstub --stream --interval 100ms | head -n 2"},
            cluster.environment({"CUSLICE_DIR=" + cluster.node("here")}));
    CHECK(outcome.exit_code == 0);
    CHECK(count(outcome.out, "\n") == 2);
    for (size_t begin = 0; begin < outcome.out.size(); begin = outcome.out.find('\n', begin) + 1) {
        const cli::Json document = cli::Json::parse(outcome.out.substr(begin, outcome.out.find('\n', begin) - begin));
        CHECK(document["gpus"].size() == 2);
        CHECK(document["gpus_failure"].is_null());
        CHECK(document["failures"].empty());
        CHECK(document["processes"][0]["command"] == "python");
    }
    // An interval that never comes to an end: it is told of the reader's end, and doesn't find out by writing.
    const Outcome waits = run({"/bin/sh", "-c", kLauncher + " top --fake=2xstub --stream --interval 24h | head -n 1"},
                              cluster.environment({"CUSLICE_DIR=" + cluster.node("here")}));
    CHECK(count(waits.out, "\n") == 1);
}

TEST_CASE("an answer of another machine is read as it was written, or not at all") {
    const Cluster cluster;
    const Job job(cluster.node("n1"), "python");
    const Outcome outcome =
        run({kLauncher, "top", "--fake=2xstub", "--json"}, cluster.environment({"CUSLICE_DIR=" + cluster.node("n1")}));
    cli::Json whole = cli::Json::parse(outcome.out);
    const auto snapshot = cli::top::parse_snapshot(whole);
    REQUIRE(snapshot);
    CHECK(snapshot->gpus.size() == 2);
    CHECK(snapshot->reserved_beyond_use(kUuid) == kGiB - 256 * kMiB);
    cli::Json again = cli::top::json_of(*snapshot);
    for (cli::Json* document : {&again, &whole})
        for (cli::Json& row : (*document)["processes"])
            row.erase("seconds"), row.erase("idle_seconds");
    CHECK(again["processes"] == whole["processes"]);
    CHECK(again["gpus"] == whole["gpus"]);
    // Each value in turn is something else: no crash, and nothing that a caller could take for an answer.
    const cli::Json flat = cli::Json::parse(outcome.out).flatten();
    for (const auto& [path, value] : flat.items()) {
        for (const cli::Json& other : {cli::Json(-1), cli::Json(1e300), cli::Json::array({1}), cli::Json::object()}) {
            cli::Json changed = cli::Json::parse(outcome.out);
            changed[cli::Json::json_pointer(path)] = other;
            (void)cli::top::parse_snapshot(changed);
        }
        cli::Json changed = cli::Json::parse(outcome.out);
        changed[cli::Json::json_pointer(path)] = -1;
        CAPTURE(path);
        // Where there is no limit it comes from nowhere, and nobody looks.
        // A UUID says itself whether it is fake.
        const bool not_read = path.ends_with("/origin") || path.ends_with("/fake");
        CHECK(cli::top::parse_snapshot(changed).has_value() == not_read);
    }
}

}  // namespace cuslice::tests
