// SPDX-License-Identifier: Apache-2.0
// Help, usage errors, and that the documentation leaves nothing out.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/settings/arguments.h"
#include "cli/settings/own_options.h"
#include "config/key.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

Outcome cuslice(std::vector<std::string> words) {
    words.insert(words.begin(), kLauncher);
    return run(words, plain_environment("/nowhere"));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// Without line breaks and what indents lines.
std::string unwrapped(const std::string& text) {
    std::string words;
    for (const char c : text)
        if (c != '\n' && c != ' ')
            words += c;
        else if (!words.ends_with(' '))
            words += ' ';
    return words;
}

// From the line on that introduces them.
std::string settings_of(const std::string& help) {
    const size_t at = help.find("\nSettings (");
    return at == help.npos ? "" : help.substr(at);
}

constexpr const char* kCommands[] = {"run", "devices", "config", "ps", "top", "set", "stats", "plot", "cdi", "jupyter"};

// In columns of a terminal; what is printed has no wide characters.
void check_width(const std::string& text) {
    size_t columns = 0;
    std::string line;
    for (const char c : text + "\n") {
        line += c;
        if (c == '\n') {
            INFO(line);
            CHECK(columns <= 80);
            columns = 0;
            line.clear();
        } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
            ++columns;
        }
    }
}

}  // namespace

TEST_CASE("help explains every option, variable and exit code, with examples") {
    CHECK(cuslice({"--version"}).out == "cuslice " CUSLICE_TEST_VERSION "\n");
    for (const char* command : {"run", "devices", "config", "doctor"}) {
        const Outcome help = cuslice({command, "--help"});
        CHECK(help.exit_code == 0);
        CHECK(help.err.empty());
        CHECK(contains(help.out, std::string("Usage: cuslice ") + command));
        CHECK(contains(help.out, "Examples:"));
        CHECK(contains(help.out, "Exit codes:"));
        for (const KeyTraits& traits : all_keys()) {
            INFO(traits.name);
            CHECK(contains(unwrapped(help.out), " --" + std::string(traits.name) + " "));
        }
        CHECK(contains(help.out, "--help-all"));
        CHECK(contains(cuslice({"--help"}).out, std::string("cuslice ") + command));
        CHECK(cuslice({command, "--limit", "4GiB", "-h"}).out == help.out);
    }
    for (const char* code : {"64", "75", "78", "126", "127"})
        CHECK(contains(cuslice({"run", "-h"}).out, code));

    const Outcome options = cuslice({"help", "options"});
    CHECK(options.exit_code == 0);
    check_width(options.out);
    for (const KeyTraits& traits : all_keys()) {
        INFO(traits.name);
        CHECK(contains(options.out, "\n  --" + std::string(traits.name) + (traits.stands_alone ? "[=" : " ")));
        CHECK(contains(options.out, std::string(traits.variable) + "\n"));
        CHECK(contains(unwrapped(options.out), std::string(traits.help)));
    }
    const Outcome values = cuslice({"help", "values"});
    check_width(values.out);
    for (const char* word : {"KiB", "percentage", "UUID", "PCI id", "CUSLICE_CONFIG", "/etc/cuslice/cuslice.toml"})
        CHECK(contains(values.out, word));
}

TEST_CASE("a command's help is no longer than 40 lines, and names its own settings alone") {
    for (const auto& [name, command, summary] : cli::command_names()) {
        const std::string help = cuslice({"help", std::string(name)}).out;
        INFO(help);
        CHECK(std::count(help.begin(), help.end(), '\n') <= 40);
        const bool own = command != cli::Command::run && command != cli::Command::help &&
                         command != cli::Command::completion && command != cli::Command::version;
        for (const KeyTraits& traits : all_keys()) {
            const std::string word = " --" + std::string(traits.name) + " ";
            if (own && !cli::takes(command, traits.key))
                CHECK_FALSE(contains(unwrapped(settings_of(help)), word));
        }
    }
}

TEST_CASE("--help-all explains the settings that a command takes, and no others") {
    for (const auto& [name, command, summary] : cli::command_names()) {
        if (command == cli::Command::completion || command == cli::Command::version)
            continue;
        const bool plain = command == cli::Command::plot || command == cli::Command::install ||
                           command == cli::Command::uninstall || command == cli::Command::help;
        const Outcome all = cuslice({std::string(name), "--help-all"});
        INFO(all.out);
        CHECK(all.exit_code == 0);
        CHECK(all.err.empty());
        check_width(all.out);
        for (const KeyTraits& traits : all_keys()) {
            const bool takes = !plain && cli::takes(command, traits.key);
            const bool whole = command == cli::Command::help;
            CHECK(contains(unwrapped(all.out), std::string(traits.help)) == (takes || whole));
        }
    }
    CHECK(cuslice({"--help-all"}).out == cuslice({"help", "--help-all"}).out);
    CHECK(contains(cuslice({"--help-all"}).out, "Usage:"));
}

TEST_CASE("a command's own options come before settings, each once, with what it does") {
    for (const auto& [name, command, summary] : cli::command_names()) {
        const std::string help = cuslice({"help", std::string(name)}).out;
        const size_t settings = help.find("\nSettings (");
        for (const cli::OwnOption& own : cli::own_options()) {
            INFO(name << " " << own.name);
            const std::string line = "\n  " + cli::written_option(own) + " ";
            const size_t at = help.find(line);
            if (own.is_of(command)) {
                REQUIRE(at != help.npos);
                CHECK(at < settings);
                CHECK(help.find(line, at + 1) == help.npos);
                CHECK(contains(unwrapped(help), std::string(own.help)));
            }
        }
    }
}

TEST_CASE("help options --json has the rows of all settings, for programs") {
    const Outcome outcome = cuslice({"help", "options", "--json"});
    CHECK(outcome.exit_code == 0);
    const auto rows = nlohmann::json::parse(outcome.out);
    CHECK(rows["version"] == 1);
    REQUIRE(rows["settings"].size() == all_keys().size());
    for (size_t i = 0; i < all_keys().size(); ++i) {
        const KeyTraits& traits = all_keys()[i];
        const auto& row = rows["settings"][i];
        CHECK(row["key"] == traits.name.view());
        CHECK(row["variable"] == traits.variable.view());
        CHECK(row["type"] == name_of(traits.type));
        CHECK(row["per_gpu"] == traits.per_gpu);
        CHECK_FALSE(row["commands"].empty());
    }
    CHECK(cuslice({"help", "values", "--json"}).exit_code == 64);
}

TEST_CASE("a command line that is not understood exits 64 with one line") {
    const auto usage = [](const std::vector<std::string>& words, const std::string& message) {
        const Outcome outcome = cuslice(words);
        CHECK(outcome.err == "cuslice: " + message + "\n");
        CHECK(outcome.exit_code == 64);
        CHECK(outcome.out.empty());
    };
    const std::string commands =
        "there are run, demo, devices, config, ps, top, set, stats, plot, cdi, jupyter, doctor, install, uninstall, "
        "completion, "
        "help and version; "
        "cuslice --help explains them";
    usage({}, "no command: " + commands);
    usage({"begin"}, "begin: no such command; " + commands + "; a program needs run: cuslice run -- program args");
    usage({"run"}, "run: a program is needed: cuslice run [options] -- program args");
    usage({"run", "--limit=1GiB", "--"}, "run: a program is needed: cuslice run [options] -- program args");
    usage({"run", "-l", "1GiB"}, "-l: no such option; options begin with --");
    usage({"devices", "all"}, "all: not expected here: this command takes options only");
    usage({"config", "--", "x"}, "x: not expected here: this command takes options only");
    usage({"set", "--limit=4GiB"},
          "set: name a group or a job: cuslice set --group NAME --limit SIZE, or --job NAME as cuslice ps shows it");
    usage({"set", "--group=lab"}, "set: a limit is needed: cuslice set --group lab --limit SIZE");
    usage({"set", "--job=x", "--fake=1xt4"}, "set: a limit or a share is needed: cuslice set --job x --limit SIZE");
    usage({"set", "--job"}, "--job: a value is needed after it: --job NAME");
    usage({"stats"}, "stats: a process id is needed: cuslice stats PID");
    usage({"stats", "python"}, "python: a process id is needed: cuslice stats PID");
    usage({"stats", "12", "13"}, "13: not expected here: this command takes options only");
    usage({"config", "--explain"}, "--explain: a value is needed after it: --explain PID");
    for (const char* pid : {"python", "0", "-1", "12a", ""})
        usage({"config", std::string("--explain=") + pid},
              std::string("--explain ") + pid + ": a process id is needed: cuslice config --explain PID");
    usage({"config", "--explain=1", "--limit=4GiB"},
          "--limit: not with --explain, which shows only the rules of the system");
    usage({"config", "--explain", "1", "2"}, "2: not expected here: this command takes options only");
    usage({"config", "--json=x"}, "--json: takes no value");
    usage({"config", "--json="}, "--json: takes no value");
    usage({"plot"}, "plot: a recording is needed: cuslice plot FILE... [-o OUT]");
    usage({"version", "now"}, "now: not expected here: cuslice version stands alone");
    usage({"help", "run", "ps"}, "ps: not expected here: cuslice help [COMMAND]");
    usage({"completion"}, "completion: name your shell: cuslice completion bash, zsh or fish");
    usage({"completion", "csh"}, "completion: name your shell: cuslice completion bash, zsh or fish");
    usage({"help", "query"},
          "query: no such command; " + commands + "; a program needs run: cuslice run -- program args");
}

TEST_CASE("plot explains what it takes and its exit codes, and leaves words behind -- to the program that draws") {
    const Outcome help = cuslice({"plot", "--help"});
    CHECK(help.exit_code == 0);
    CHECK(contains(help.out, "Usage: cuslice plot FILE... [-o OUT] [--title TEXT] [--open]\n"));
    for (const char* part : {"Examples:", "--output OUT", "--title TEXT", "--open ", ".html", ".svg", ".png",
                             "vl-convert-python", "64", "65", "66", "69", "73"}) {
        INFO(part);
        CHECK(contains(help.out, part));
    }
    CHECK(cuslice({"plot", "a.csv", "-o", "b.svg", "-h"}).out == help.out);
    CHECK(contains(cuslice({"--help"}).out, "cuslice plot FILE..."));
    const Outcome behind = cuslice({"plot", "--", "--help"});  // there is no Python, or no such file
    CHECK(behind.exit_code != 0);
    CHECK(behind.out.empty());
}

TEST_CASE("help and version are options and commands") {
    const std::string version = "cuslice " CUSLICE_TEST_VERSION "\n";
    for (const Words& words :
         {Words{"-V"}, {"--version"}, {"version"}, {"run", "--version"}, {"ps", "-V"}, {"plot", "a", "-V"}}) {
        CHECK(cuslice(words).out == version);
        CHECK(cuslice(words).exit_code == 0);
    }
    // Behind the program it is the program's.
    CHECK(cuslice({"run", "--", "/bin/echo", "--version", "-V"}).out != version);
    const std::string whole = cuslice({"--help"}).out;
    CHECK(contains(whole, "Usage:"));
    for (const Words& words : {Words{"-h"}, {"help"}, {"help", "--help"}, {"help", "help"}, {"help", "version"}})
        CHECK(cuslice(words).out == whole);
    for (const char* command : kCommands) {
        CHECK(cuslice({"help", command}).out == cuslice({command, "--help"}).out);
        CHECK(cuslice({"help", command}).exit_code == 0);
    }
}

TEST_CASE("a word that is no command gets the one that was meant, or run if it is a program") {
    const auto meant = [](const std::vector<std::string>& words, const std::string& hint) {
        const Outcome outcome = cuslice(words);
        CHECK(outcome.err == "cuslice: " + hint + "\n");
        CHECK(outcome.exit_code == 64);
        CHECK(outcome.out.empty());
    };
    meant({"rum", "--", "x"}, "rum: no such command; did you mean run");
    meant({"device"}, "device: no such command; did you mean devices");
    meant({"confg"}, "confg: no such command; did you mean config");
    meant({"help", "stat5"}, "stat5: no such command; did you mean stats");
    meant({"kill", "812"}, "kill: no such command: cuslice ends no programs; kill 812 does");
    meant({"stop", "it"}, "stop: no such command: cuslice ends no programs; kill PID does");
    meant({"status"}, "status: no such command; did you mean cuslice ps, or cuslice top");
    meant({"run", "-v", "sh"}, "-v: no such option; for more messages --log info, for the version -V");
    meant({"run", "-gpus", "0", "sh"}, "-gpus: no such option; did you mean --gpus");
    meant({"run", "\u2013limit=4GiB", "sh"},
          "\u2013limit=4GiB: begins with a dash instead of hyphens; did you mean --limit");
    meant({"demo", "sh"},
          "sh: not expected here: this command takes options only; to run a program of your own: cuslice run -- sh");
    meant({"top", "--interval", "5"},
          "--interval 5: a time from 100ms to 24h is needed: 500ms, 2s, 1m; did you mean 5s");
    meant({"sh", "-c", "true"}, "sh: no such command; did you mean cuslice run -- sh");
    meant({"/bin/sh"}, "/bin/sh: no such command; did you mean cuslice run -- /bin/sh");
    meant({"--fraction", "0.4", "sh"},
          "--fraction: a command comes first; did you mean cuslice run --fraction ... -- program args");
    meant({"--limit=4GiB", "sh"},
          "--limit=4GiB: a command comes first; did you mean cuslice run --limit ... -- program args");
    CHECK(contains(cuslice({"--nothing"}).err, "--nothing: no such option here; there are run"));
    CHECK(cuslice({"--nothing"}).exit_code == 64);
}

TEST_CASE("no line of a help or a table is longer than 80 columns") {
    check_width(cuslice({"--help"}).out);
    for (const char* command : kCommands)
        check_width(cuslice({command, "--help"}).out);
    const std::string name(200, 'x');
    const Folder folder;
    const std::string path = folder.write(name + "/" + name + "/cuslice.toml", "[memory]\nlimit = \"2GiB\"\n");
    for (const Words& words : {Words{"devices", "--fake=2xstub"},
                               {"devices", "--fake=2xstub", "--limit=0=2GiB+context"},
                               {"devices", "--fake=2xstub", "--config", path},
                               {"config"},
                               {"config", "--config", path},
                               {"config", "--limit=GPU-50505050-5050-5050-5050-505050505050=4GiB,*=1GiB"},
                               {"ps"}}) {
        const Outcome outcome = cuslice(words);
        CHECK(outcome.exit_code == 0);
        CHECK_FALSE(outcome.out.empty());
        check_width(outcome.out);
    }
}

TEST_CASE("a value behind a space, where an option may stand alone, is not taken for the program") {
    const auto refused = [](const std::vector<std::string>& words, const std::string& message) {
        const Outcome outcome = cuslice(words);
        CHECK(outcome.err == "cuslice: " + message + "\n");
        CHECK(outcome.exit_code == 64);
        CHECK(outcome.out.empty());
    };
    const auto advice = [](const std::string& option, const std::string& value, const std::string& unit = "") {
        return option + " " + value + ": a value goes behind an equals sign: " + option + "=" + value + unit +
               "; if this is the program, write -- before it";
    };
    refused({"run", "--wait", "10", "--", "/bin/true"}, advice("--wait", "10", "s"));
    refused({"run", "--wait", "1TiB", "--", "/bin/true"}, advice("--wait", "1TiB"));
    refused({"run", "--per-process", "true"}, advice("--per-process", "true"));
    refused({"run", "--wait", "yes", "/bin/true"}, advice("--wait", "yes"));
    refused({"doctor", "--wait", "yes", "/bin/true"}, advice("--wait", "yes"));
    refused({"config", "--wait", "soon"}, "--wait soon: a value goes behind an equals sign: --wait=soon");
    CHECK(cuslice({"run", "--per-process", "--", "true"}).exit_code == 0);
    CHECK(cuslice({"run", "--per-process", "/bin/true"}).exit_code == 0);
    CHECK(cuslice({"run", "--wait", "--limit=1GiB", "--per-process", "/bin/echo", "no"}).out == "no\n");
    CHECK(cuslice({"run", "--group", "10", "--wait=10m", "/bin/echo", "10m"}).out == "10m\n");
}

TEST_CASE("a time, a number or no behind a space is the value of an option that may stand alone") {
    CHECK(cuslice({"run", "--wait", "10m", "/bin/echo", "a"}).out == "a\n");
    CHECK(cuslice({"run", "--wait", "10m", "--", "/bin/echo", "a"}).out == "a\n");
    CHECK(cuslice({"run", "--limit", "1GiB", "--oversubscribe", "no", "--wait", "500ms", "/bin/echo", "a"}).out ==
          "a\n");
    CHECK(cuslice({"run", "--no-framework-env", "no", "/bin/echo", "no"}).out == "no\n");
    CHECK(cuslice({"run", "--summary", "0", "--per-process", "1", "/bin/echo", "0"}).out == "0\n");
    // A program of such a name needs the dashes.
    CHECK(cuslice({"run", "--wait", "--", "10m"}).exit_code == 127);
    const std::string table = cuslice({"config", "--wait", "10m", "--limit", "2GiB", "--per-process", "yes"}).out;
    CHECK(contains(unwrapped(table), "wait - 10m --wait"));
    CHECK(contains(unwrapped(table), "per-process - yes --per-process"));
    CHECK(contains(unwrapped(table), "limit * 2GiB --limit"));
    // The value is checked like any other, and there is still a program to be named.
    CHECK(cuslice({"run", "--wait", "10m"}).err ==
          "cuslice: run: a program is needed: cuslice run [options] -- program args\n");
    CHECK(cuslice({"run", "--gpus", "1", "--wait", "10m", "--nothing", "x"}).exit_code == 64);
}

TEST_CASE("a command takes the options that mean something to it, and no others") {
    for (const char* command : {"ps", "stats", "set"}) {
        const Outcome help = cuslice({command, "--help"});
        for (const char* option : {"--dir ", "--fake ", "--config "})
            CHECK(contains(unwrapped(help.out), option));
        for (const char* option : {"--gpus", "--split", "--wait", "--record"})
            CHECK_FALSE(contains(help.out, option));
        const Outcome refused = cuslice({command, "--gpus", "1"});
        CHECK(refused.err == "cuslice: --gpus: not an option of cuslice " + std::string(command) + "; cuslice " +
                                 command + " --help lists what it takes\n");
        CHECK(refused.exit_code == 64);
    }
    CHECK(contains(cuslice({"set", "--help"}).out, "--limit SIZE"));
    CHECK(cuslice({"ps", "--limit=4GiB"}).exit_code == 64);
}

TEST_CASE("docs/configuration.md documents every option, key and variable, and those that come later") {
    const std::string docs = read_text(CUSLICE_TEST_DOCS);
    REQUIRE_FALSE(docs.empty());
    for (const KeyTraits& traits : all_keys()) {
        INFO(traits.name);
        CHECK(contains(docs, "### `" + std::string(traits.name) + "`"));
        CHECK(contains(docs, "`--" + std::string(traits.name)));
        CHECK(contains(docs, "`" + std::string(traits.variable) + "`"));
        CHECK(contains(docs, std::string(traits.default_value)));
    }
    for (const LaterKey& later : later_keys()) {
        INFO(later.name);
        CHECK(contains(docs, "`" + std::string(later.name) + "`"));
    }
    for (const std::string_view name : internal_variables()) {
        INFO(name);
        CHECK(contains(docs, "`" + std::string(name) + "`"));
    }
    for (const char* name : {"CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT_",
                             "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "XDG_CONFIG_HOME", "/etc/cuslice/cuslice.toml",
                             "./cuslice.toml", "[memory]", "[gpu.0]", "[ceiling]", "[ceiling.gpu.0]", "KiB", "TB"}) {
        INFO(name);
        CHECK(contains(docs, name));
    }
}

}  // namespace cuslice::tests
