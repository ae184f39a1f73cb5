#include "cli/arguments.h"

#include "cli/exit_codes.h"

namespace cuslice::cli {
namespace {

constexpr std::string_view kCommands = "there are run, devices and config; cuslice --help explains them";

int usage(ConfigError& error, std::string_view word, std::string_view why) {
    error.set(word, why);
    return kUsage;
}

// The words of the command line and how far they are read.
struct Words {
    const std::vector<std::string>& all;
    std::size_t at;

    bool more() const { return at < all.size(); }
    const std::string& here() const { return all[at]; }
};

// An option that is none of this version's settings. What it was given may be its value or the next thing on the line:
// it is shown only where it was written with an equals sign.
int refuse_option(const std::string& name, const std::string* value, ConfigError& error) {
    Reason why;
    if (const LaterKey* later = find_later_key(std::string_view(name).substr(2))) {
        explain_later(*later, why);
    } else {
        explain_unknown(Spelling::option, name, why);
    }
    if (value != nullptr) {
        error.set(name, *value, why.view());
    } else {
        error.set(name, why.view());
    }
    return kConfig;
}

// One option of the form --name, --name value or --name=value that is a setting.
int parse_setting(Words& words, Arguments& arguments, ConfigError& error) {
    const std::string word = words.all[words.at++];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string after = equals == word.npos ? std::string() : word.substr(equals + 1);
    const KeyTraits* traits = name.starts_with("--") ? find_key(std::string_view(name).substr(2)) : nullptr;
    if (traits == nullptr && !name.starts_with("--"))
        return usage(error, word, "no such option; options begin with --");
    if (traits == nullptr) return refuse_option(name, equals == word.npos ? nullptr : &after, error);
    if (equals != word.npos) {
        arguments.flags.push_back({traits->key, after});
        return 0;
    }
    if (!words.more() || words.here() == "--") {
        Reason why;
        why.assign("a value is needed after it: ").append(name).append(" ").append(traits->placeholder);
        error.set(name, why.view());
        return kConfig;
    }
    arguments.flags.push_back({traits->key, words.all[words.at++]});
    return 0;
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

// Stops at the first word that is no option, like env(1): "cuslice run --limit 4GiB python x.py --limit 3" is clear.
int parse_options(Words& words, Arguments& arguments, ConfigError& error) {
    const Command command = arguments.command;
    while (words.more()) {
        const std::string& word = words.here();
        if (is_help(word)) {
            arguments.topic = command;
            arguments.command = Command::help;
            return 0;
        }
        if (word == "--" || !word.starts_with("-") || word == "-") break;
        if (word == "--json" && command != Command::run) {
            arguments.json = true;
            ++words.at;
        } else if (const int code = parse_setting(words, arguments, error)) {
            return code;
        }
    }
    if (words.more() && words.here() == "--") ++words.at;
    if (command != Command::run) {
        return words.more() ? usage(error, words.here(), "not expected here: this command takes options only") : 0;
    }
    arguments.program.assign(words.all.begin() + static_cast<std::ptrdiff_t>(words.at), words.all.end());
    if (arguments.program.empty())
        return usage(error, "run", "a program is needed: cuslice run [options] -- program args");
    return 0;
}

}  // namespace

int parse_arguments(const std::vector<std::string>& words, Arguments& arguments, ConfigError& error) {
    if (words.empty()) return usage(error, "no command", kCommands);
    const std::string& word = words[0];
    if (is_help(word)) return 0;
    if (word == "--version") {
        arguments.command = Command::version;
        return 0;
    }
    if (word == "query") {
        // Not for people: the launcher asks a driver in a process of its own.
        arguments.command = Command::query;
        arguments.query.assign(words.begin() + 1, words.end());
        return 0;
    }
    if (word == "run") {
        arguments.command = Command::run;
    } else if (word == "devices") {
        arguments.command = Command::devices;
    } else if (word == "config") {
        arguments.command = Command::config;
    } else {
        return usage(error, word, std::string("no such command; ").append(kCommands));
    }
    Words rest{words, 1};
    return parse_options(rest, arguments, error);
}

}  // namespace cuslice::cli
