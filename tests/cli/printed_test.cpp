// SPDX-License-Identifier: Apache-2.0
// The launcher's texts for shells and for man: completion scripts and pages of the manual; and its messages.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "cli/settings/arguments.h"
#include "config/key.h"
#include "policy/ledger/folder.h"
#include "policy/ledger/layout.h"
#include "policy/ledger/ledger.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/ledger_job.h"
#include "tests/cli/tree.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

Outcome cuslice(Words words) {
    words.insert(words.begin(), kLauncher);
    return run(words, plain_environment("/nowhere"));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string tool(const char* name) {
    for (const char* folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"})
        if (::access((std::string(folder) + name).c_str(), X_OK) == 0)
            return std::string(folder) + name;
    return {};
}

// Bash's completions for the last word of a line, which bash itself divides into words.
Words offered(const std::string& words, const Words& more_environment = {}) {
    const Folder folder;
    const std::string script = folder.write("completion", cuslice({"completion", "bash"}).out);
    const Outcome outcome =
        run({tool("bash"), "-c",
             "source " + script + "; COMP_WORDS=(" + words +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cuslice; printf '%s\\n' \"${COMPREPLY[@]}\""},
            with(plain_environment(folder.path()), more_environment), folder.path());
    INFO(outcome.err);
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
    Words lines;
    std::istringstream out(outcome.out);
    for (std::string line; std::getline(out, line);)
        if (!line.empty())
            lines.push_back(line);
    return lines;
}

bool offers(const std::string& words, const std::string& one) {
    const Words all = offered(words);
    return std::find(all.begin(), all.end(), one) != all.end();
}

// Backslashes and font changes taken out of a page's source.
std::string without_escapes(std::string text) {
    for (const char* escape : {"\\fB", "\\fR", "\\"})
        for (size_t at = 0; (at = text.find(escape)) != text.npos;)
            text.erase(at, std::string(escape).size());
    return text;
}

}  // namespace

TEST_CASE("bash completes commands, options, values and the program") {
    if (tool("bash").empty())
        return skip("there is no bash here");
    CHECK(offered("cuslice dev") == Words{"devices"});
    for (const auto& [name, command, summary] : cli::command_names())
        CHECK(offers("cuslice ''", std::string(name)));
    for (const auto& [name, command, summary] : cli::command_names()) {
        if (command == cli::Command::help || command == cli::Command::version || command == cli::Command::completion)
            continue;
        const Words options = offered("cuslice " + std::string(name) + " --");
        for (const KeyTraits& traits : all_keys()) {
            INFO(name << " " << traits.name);
            const bool there = std::count(options.begin(), options.end(), "--" + std::string(traits.name)) == 1;
            CHECK(there == cli::takes(command, traits.key));
        }
    }
    CHECK(offers("cuslice plot --", "--output"));
    CHECK(offers("cuslice plot --", "--title"));
    CHECK(offered("cuslice plot comp") == Words{"completion"});  // a file, as are the script and what follows
    CHECK(offered("cuslice plot -o comp") == Words{"completion"});
    CHECK(offered("cuslice plot --output = comp") == Words{"completion"});
    CHECK(offered("cuslice run --allocator ''") == Words{"direct", "growth", "prealloc"});
    CHECK(offered("cuslice run --allocator = gr") == Words{"growth"});
    CHECK(offered("cuslice run --allocator =") == Words{"direct", "growth", "prealloc"});
    CHECK(offered("cuslice run --wait =") == Words{"yes", "no"});
    CHECK(offered("cuslice run --limit 4GiB --free d") == Words{"deferred"});
    CHECK(offered("cuslice run --limit ''").empty());
    CHECK(offered("cuslice config --json --gpus a") == Words{"any", "all"});
    CHECK(offered("cuslice top --o") == Words{"--once", "--over"});
    CHECK(offered("cuslice top --interval ''").empty());
    CHECK(offered("cuslice top --nodes n1 --l") == Words{"--launcher"});
    CHECK(offered("cuslice top --over ''").empty());
    CHECK(offered("cuslice config --exp") == Words{"--explain"});
    CHECK(offers("cuslice config --explain ''", std::to_string(::getpid())));
    CHECK(offered("cuslice config --explain 1 --js") == Words{"--json"});
    CHECK(offered("cuslice help sta") == Words{"stats"});
    CHECK(offered("cuslice completion f") == Words{"fish"});
    CHECK(offers("cuslice run --wait bas", "bash"));
    CHECK(offers("cuslice run --limit 4GiB bas", "bash"));
    CHECK(offers("cuslice run -- bas", "bash"));
    // Behind the program, cuslice's options are not meant.
    CHECK_FALSE(offers("cuslice run -- bash --", "--limit"));
    CHECK_FALSE(offers("cuslice run bash --", "--limit"));
    CHECK(offers("cuslice run --config comp", "completion"));
}

namespace {

// A job and a group on one GPU, as long as it lives, and a job whose name a shell would expand.
class Ledger {
  public:
    explicit Ledger(const std::string& folder) {
        REQUIRE(ledger_.open(folder.c_str(), "GPU-5f", 1 << 30, false, nullptr));
        join(job_, "train-7", ledger::AccountKind::job);
        join(group_, "lab", ledger::AccountKind::group);
        join(other_, "$(touch x)", ledger::AccountKind::job);
    }

  private:
    void join(ledger::Membership& membership, const char* name, ledger::AccountKind kind) {
        ledger::Committed committed;
        uint64_t available = 0;
        ledger::Request request;
        request.name = name, request.kind = kind, request.limit = 1 << 20;
        REQUIRE(ledger_.join(request, 0, &membership, &committed, &available, nullptr) == ledger::Joined::yes);
    }

    ledger::Ledger ledger_;
    ledger::Membership job_, group_, other_;
};

}  // namespace

TEST_CASE("completion asks for groups, jobs and processes that are there, and gives no shell what it would expand") {
    const Folder folder;
    const Ledger ledger(folder.path());
    const Words environment = {"CUSLICE_DIR=" + folder.path()};
    const auto names = [&](const char* kind) {
        return run({kLauncher, "completion", "names", kind}, with(plain_environment("/nowhere"), environment));
    };
    CHECK(names("groups").out == "lab\n");
    CHECK(names("jobs").out == "train-7\n");
    CHECK(names("pids").out == std::to_string(::getpid()) + "\n");
    CHECK(names("pids").err.empty());
    CHECK(names("pids").exit_code == 0);
    CHECK(names("rules").exit_code == 64);
    if (tool("bash").empty())
        return skip("there is no bash here");
    const auto complete = [&](const std::string& words) { return offered(kLauncher + " " + words, environment); };
    CHECK(complete("run --group l") == Words{"lab"});
    CHECK(complete("set --job ''") == Words{"train-7"});
    CHECK(complete("ps --job tr") == Words{"train-7"});
    CHECK(complete("stats ''") == Words{std::to_string(::getpid())});
    CHECK(complete("stats --js") == Words{"--json"});
}

TEST_CASE("profiles of fake GPUs are completed behind a number and behind a comma") {
    if (tool("bash").empty())
        return skip("there is no bash here");
    const Folder folder;
    const std::string launcher = folder.write(
        "cuslice", "#!/bin/sh\n[ \"$*\" != 'completion names profiles' ] || printf 't4\\nh200\\n'\n", 0755);
    const auto complete = [&](const std::string& word) { return offered(launcher + " run --fake " + word); };
    CHECK(complete("t") == Words{"t4"});
    CHECK(complete("4xh") == Words{"4xh200"});
    CHECK(complete("4xh200,2xt") == Words{"4xh200,2xt4"});
    CHECK(complete("comp") == Words{"completion"});  // a file
}

TEST_CASE("the completion scripts for zsh and fish name every option, and are taken by their shells") {
    const Folder folder;
    for (const char* shell : {"zsh", "fish"}) {
        const Outcome script = cuslice({"completion", shell});
        CHECK(script.exit_code == 0);
        for (const KeyTraits& traits : all_keys())
            CHECK(contains(script.out, (shell[0] == 'z' ? "--" : "-l ") + std::string(traits.name)));
    }
    const std::string zsh_script = folder.write("_cuslice", cuslice({"completion", "zsh"}).out);
    const std::string fish_script = folder.write("cuslice.fish", cuslice({"completion", "fish"}).out);
    if (tool("zsh").empty() || tool("fish").empty())
        return skip("there is no zsh or no fish here");
    const Words environment = plain_environment(folder.path());
    const Outcome zsh =
        run({tool("zsh"), "-f", "-c",
             "autoload -U compinit && compinit -u -D && source " + zsh_script + " && print $_comps[cuslice]"},
            environment, folder.path());
    CHECK(zsh.err.empty());
    CHECK(zsh.out == "_cuslice\n");
    const auto fish = [&](const std::string& line) {
        return run({tool("fish"), "-c", "source " + fish_script + "; complete -C '" + line + "'"}, environment,
                   folder.path());
    };
    CHECK(contains(fish("cuslice dev").out, "devices\t"));
    CHECK(contains(fish("cuslice run --allo").out, "--allocator"));
    CHECK(contains(fish("cuslice run --allocator gr").out, "growth"));
    CHECK(fish("cuslice run --allocator gr").err.empty());
}

TEST_CASE("the manual has every option, variable and key, and troff has nothing to complain of") {
    const Outcome command = cuslice({"help", "--man"}), file = cuslice({"help", "--man", "cuslice.toml"});
    CHECK(command.out == cuslice({"help", "--man", "cuslice"}).out);
    const std::string options = without_escapes(command.out), keys = without_escapes(file.out);
    for (const KeyTraits& traits : all_keys()) {
        INFO(traits.name);
        CHECK(contains(options, ".TP\n--" + std::string(traits.name)));
        CHECK(contains(options, std::string(traits.variable)));
        CHECK(contains(options, std::string(traits.help)));
        CHECK(contains(keys, ".TP\n" + std::string(traits.name) + " = ") == traits.in_file);
    }
    for (const auto& [name, command_of, summary] : cli::command_names())
        CHECK(contains(options, ".TP\n" + std::string(name) + "\n"));
    const size_t synopsis = options.find(".SH SYNOPSIS"), end = options.find(".SH DESCRIPTION");
    const std::string usage = options.substr(synopsis, end - synopsis);
    for (const auto& [name, command_of, summary] : cli::command_names()) {
        INFO(name);
        CHECK((contains(usage, "cuslice " + std::string(name)) || contains(usage, "|" + std::string(name))));
    }
    for (const std::string own :
         {"--json", "--prometheus", "--wide", "--explain PID", "--job NAME", "--interval TIME", "--once", "--stream",
          "--nodes LIST", "--over COMMAND", "--launcher PATH", "--timeout TIME", "--system", "--root DIR"}) {
        INFO(own);
        CHECK(contains(options, ".TP\n" + own + "\n"));
    }
    const std::string wrong = cuslice({"help", "--man", "x"}).err;
    CHECK(wrong == "cuslice: x: no such page: cuslice help --man [cuslice|cuslice.toml]\n");
    if (tool("groff").empty())
        return skip("there is no groff here");
    const Folder folder;
    for (const Outcome* page : {&command, &file}) {
        const std::string source = folder.write("page", page->out);
        const Outcome formatted =
            run({tool("groff"), "-ww", "-man", "-Tutf8", source}, plain_environment(folder.path()));
        CHECK(formatted.exit_code == 0);
        CHECK(formatted.err.empty());
        CHECK(contains(formatted.out, page == &command ? "a slice of a GPU for every" : "settings of cuslice"));
    }
}

namespace {

// A title for the terminal, a colour, and a change of the direction of writing.
constexpr const char* kObeyed[] = {"\x1b]0;x\x07", "\x1b[31m", "\xe2\x80\xae"};

bool is_harmless(const Outcome& outcome) {
    const std::string all = outcome.out + outcome.err;
    const auto obeyed = [&](const char* text) { return contains(all, text) || contains(all, std::string(1, *text)); };
    return !all.empty() && std::none_of(std::begin(kObeyed), std::end(kObeyed), obeyed);
}

// A process of this name, until the end of the case.
class Named {
  public:
    explicit Named(const char* name) : pid_(::fork()) {
        if (pid_ == 0) {
            ::prctl(PR_SET_NAME, name);
            ::kill(::getpid(), SIGSTOP);
            ::_exit(0);
        }
        ::waitpid(pid_, nullptr, WUNTRACED);
    }
    ~Named() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Named(const Named&) = delete;
    Named& operator=(const Named&) = delete;

    std::string pid() const { return std::to_string(pid_); }

  private:
    pid_t pid_;
};

}  // namespace

TEST_CASE("a message shows names of others as bytes: of processes, and of files in the ledgers' folder") {
    const char* const name = GENERATE(as<const char*>(), kObeyed[0], kObeyed[1], kObeyed[2]);
    const Folder folder;
    const auto ask = [&](Words words) { return cuslice(with(words, {"--dir", folder.path()})); };

    const Named process(name);
    const Outcome no_figures = ask({"stats", process.pid()});
    CHECK(no_figures.exit_code == 69);
    CHECK(is_harmless(no_figures));

    // Another user's, where one can be made.
    const unsigned user = ::geteuid() == 0 ? 60002 : ::geteuid();
    char path[ledger::kPathBytes];
    REQUIRE(ledger::ledger_path(folder.path().c_str(), user, name, path));
    REQUIRE(::mkfifo(path, 0666) == 0);
    REQUIRE(::chown(path, user, static_cast<gid_t>(-1)) == 0);
    const Outcome not_read = ask({"ps"});
    CHECK(contains(not_read.err, "cuslice: ps: "));
    CHECK(is_harmless(not_read));
    CHECK(is_harmless(cuslice({"top", "--once", "--dir", folder.path()})));

    ::unlink(path);
    const LedgerJob job(folder.path(), name);
    const Outcome peak = ask({"ps", "--job", "job"});
    CHECK(contains(peak.out, "job held at most"));
    CHECK(is_harmless(peak));
}

}  // namespace cuslice::tests
