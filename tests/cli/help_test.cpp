// Help, usage errors, and that the documentation leaves nothing out.
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

}  // namespace

TEST_CASE("help explains every option, variable and exit code, with examples") {
    CHECK(cuslice({"--version"}).out == "cuslice " CUSLICE_TEST_VERSION "\n");
    for (const char* command : {"run", "devices", "config"}) {
        const Outcome help = cuslice({command, "--help"});
        CHECK(help.exit_code == 0);
        CHECK(help.err.empty());
        CHECK(contains(help.out, std::string("Usage: cuslice ") + command));
        CHECK(contains(help.out, "Examples:"));
        CHECK(contains(help.out, "Exit codes:"));
        for (const KeyTraits& traits : all_keys()) {
            INFO(traits.name);
            CHECK(contains(help.out, "--" + std::string(traits.name) + (traits.stands_alone ? "[=" : " ")));
            CHECK(contains(help.out, std::string(traits.variable)));
            CHECK(contains(help.out, std::string(traits.help)));
        }
        CHECK(contains(cuslice({"--help"}).out, std::string("cuslice ") + command));
        CHECK(cuslice({command, "--limit", "4GiB", "-h"}).out == help.out);
    }
    for (const char* code : {"64", "75", "78", "126", "127"}) CHECK(contains(cuslice({"run", "-h"}).out, code));
}

TEST_CASE("a command line that is not understood exits 64 with one line") {
    const auto usage = [](const std::vector<std::string>& words, const std::string& message) {
        const Outcome outcome = cuslice(words);
        CHECK(outcome.err == "cuslice: " + message + "\n");
        CHECK(outcome.exit_code == 64);
        CHECK(outcome.out.empty());
    };
    const std::string commands = "there are run, devices, config, ps, set and stats; cuslice --help explains them";
    usage({}, "no command: " + commands);
    usage({"start"}, "start: no such command; " + commands);
    usage({"run"}, "run: a program is needed: cuslice run [options] -- program args");
    usage({"run", "--limit=1GiB", "--"}, "run: a program is needed: cuslice run [options] -- program args");
    usage({"run", "-l", "1GiB"}, "-l: no such option; options begin with --");
    usage({"devices", "all"}, "all: not expected here: this command takes options only");
    usage({"config", "--", "x"}, "x: not expected here: this command takes options only");
    usage({"set", "--limit=4GiB"},
          "set: which one? cuslice set --group NAME --limit SIZE, or --job NAME as cuslice ps shows it");
    usage({"set", "--group=lab"}, "set: --limit is missing: to what? cuslice set --group lab --limit SIZE");
    usage({"set", "--job=x", "--fake=1xt4"}, "set: --limit is missing: to what? cuslice set --job x --limit SIZE");
    usage({"stats"}, "stats: a process id is needed: cuslice stats PID");
    usage({"stats", "python"}, "python: a process id is needed: cuslice stats PID");
    usage({"stats", "12", "13"}, "13: not expected here: this command takes options only");
    usage({"config", "--json=x"}, "--json: takes no value");
    usage({"config", "--json="}, "--json: takes no value");
    CHECK(cuslice({"run", "--version"}).exit_code == 64);
}

TEST_CASE("a value behind a space, where an option may stand alone, is not taken for the program") {
    const auto refused = [](const std::vector<std::string>& words, const std::string& message) {
        const Outcome outcome = cuslice(words);
        CHECK(outcome.err == "cuslice: " + message + "\n");
        CHECK(outcome.exit_code == 64);
        CHECK(outcome.out.empty());
    };
    const auto advice = [](const std::string& option, const std::string& value) {
        return option + " " + value + ": a value goes behind an equals sign: " + option + "=" + value +
               "; if this is the program, write -- before it";
    };
    refused({"run", "--wait", "10m", "/bin/true"}, advice("--wait", "10m"));
    refused({"run", "--wait", "10", "--", "/bin/true"}, advice("--wait", "10"));
    refused({"run", "--wait", "1TiB", "--", "/bin/true"}, advice("--wait", "1TiB"));
    refused({"run", "--limit", "1GiB", "--oversubscribe", "no", "/bin/true"}, advice("--oversubscribe", "no"));
    refused({"run", "--per-process", "true"}, advice("--per-process", "true"));
    refused({"run", "--no-framework-env", "no", "/bin/true"}, advice("--no-framework-env", "no"));
    refused({"config", "--wait", "soon"}, "--wait soon: a value goes behind an equals sign: --wait=soon");
    CHECK(cuslice({"run", "--per-process", "--", "true"}).exit_code == 0);
    CHECK(cuslice({"run", "--per-process", "/bin/true"}).exit_code == 0);
    CHECK(cuslice({"run", "--wait", "--limit=1GiB", "--per-process", "/bin/echo", "no"}).out == "no\n");
    CHECK(cuslice({"run", "--group", "10", "--wait=10m", "/bin/echo", "10m"}).out == "10m\n");
}

TEST_CASE("a command takes the options that mean something to it, and no others") {
    for (const char* command : {"ps", "stats", "set"}) {
        const Outcome help = cuslice({command, "--help"});
        for (const char* option : {"--dir ", "--fake ", "--config "}) CHECK(contains(help.out, option));
        for (const char* option : {"--gpus", "--split", "--wait", "--record"}) CHECK_FALSE(contains(help.out, option));
        const Outcome refused = cuslice({command, "--gpus", "1"});
        CHECK(refused.err == "cuslice: --gpus: means nothing to cuslice " + std::string(command) + "; cuslice " +
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
