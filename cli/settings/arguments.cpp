// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>

#include "cli/settings/own_options.h"
#include "cli/settings/unknown_command.h"
#include "cli/text/exit_codes.h"
#include "config/settings.h"

namespace cuslice::cli {
namespace {

// The last word first: so CLI11 takes them, and so it leaves what it did not understand for the next parser.
using Words = std::vector<std::string>;

bool takes_program(Command command) { return command == Command::run || command == Command::doctor; }

// Options that may stand alone.
struct Switch {
    std::string value;
    bool empty = false;  // `--wait=`, as a script with an unset variable has it: no value, and not "yes" either
};
using Switches = std::map<Key, Switch>;

int usage(ConfigError& error, std::string_view word, std::string_view why) {
    error.set(word, why);
    return kUsage;
}

bool is_help(const std::string& word) { return word == "-h" || word == "--help" || word == "--help-all"; }

int ask_for_help(Command topic, bool all, Arguments& arguments) {
    arguments.command = Command::help;
    arguments.topic = topic;
    arguments.help_all = all;
    return 0;
}

// The value given to an option. `words` is the whole line, `rest` the part that CLI11 has not read yet.
std::string value_of(const std::string& name, std::string_view placeholder, const std::string& value,
                     const Words& words, Words& rest, ConfigError& error) {
    const bool own_word = words[rest.size()] == value;
    if (own_word && words[rest.size() + 1].ends_with("=")) {
        // `--limit=`, as a script with an unset variable has it, is no reason to take the next word.
        rest.push_back(value);
        return {};
    }
    if (own_word && value == "--") {
        error.set(name, "a value is needed after it: " + name + " " + std::string(placeholder));
        throw CLI::RuntimeError(kUsage);
    }
    return value;
}

void add_settings(CLI::App& app, Command command, const Words& words, Words& rest, std::vector<Flag>& flags,
                  Switches& switches, ConfigError& error) {
    for (const KeyTraits& traits : all_keys()) {
        if (!takes(command, traits.key))
            continue;
        const std::string name = "--" + std::string(traits.name);
        if (traits.stands_alone) {
            Switch& given = switches[traits.key];
            const auto look = [&, name](const std::string&) {
                given.empty = given.empty || words[rest.size()] == name + "=";
            };
            CLI::Option* const option = app.add_flag(name, given.value)->each(look)->trigger_on_parse();
            option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
            continue;
        }
        const auto add = [&, name](const std::string& value) {
            flags.push_back({traits.key, value_of(name, traits.placeholder, value, words, rest, error)});
        };
        // On parse: an option may come several times, and the order of the line is kept.
        app.add_option_function<std::string>(name, add)->trigger_on_parse();
    }
}

// A word before the program that is none of this command's options. What follows it may be its value or the next thing
// on the line: a value is shown only where it was written with an equals sign.
int refuse_option(Command command, const std::string& word, ConfigError& error) {
    if (!word.starts_with("--"))
        return usage(error, word, explain_short_option(word));
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    Reason why;
    if (find_key(std::string_view(name).substr(2)) != nullptr) {
        why.append("not an option of cuslice ").append(name_of(command)).append("; cuslice ").append(name_of(command));
        why.append(" --help lists what it takes");
    } else if (const LaterKey* later = find_later_key(std::string_view(name).substr(2))) {
        explain_later(*later, why);
    } else {
        explain_unknown(Spelling::option, name, why);
    }
    equals == word.size() ? error.set(name, why.view()) : error.set(name, word.substr(equals + 1), why.view());
    return kUsage;
}

bool all_digits(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

// The word behind an option that may stand alone is the program, or the next mistake; but people write a value there,
// as behind any other option. `last` is that option or whatever else was read last.
// `taken` says that it is the option's value, and could be nothing else.
const KeyTraits* takes_for_value(Command command, const std::string& last, const Words& rest, bool& taken) {
    taken = false;
    const KeyTraits* const traits = last.starts_with("--") ? find_key(std::string_view(last).substr(2)) : nullptr;
    if (traits == nullptr || !traits->stands_alone || rest.size() < 2 || rest.back().starts_with("-"))
        return nullptr;
    const std::string& word = rest.back();
    const bool before_program = word[0] >= '0' && word[0] <= '9' && rest[rest.size() - 2] == "--" && rest.size() > 2;
    uint64_t number = 0;
    bool automatic = false;
    Reason unused;
    const bool a_value = parse_value(traits->key, word, number, automatic, unused);
    // There are programs of these names, and words for yes and no: nobody can tell which was meant.
    const bool a_program = takes_program(command) && (word == "yes" || word == "true" || word == "false");
    taken = a_value && !a_program;
    return a_value || all_digits(word) || before_program || !takes_program(command) ? traits : nullptr;
}

int refuse_value(Command command, const KeyTraits& traits, const std::string& word, ConfigError& error) {
    const std::string name = "--" + std::string(traits.name);
    const char* const program = takes_program(command) ? "; if this is the program, write -- before it" : "";
    // A number alone is seconds to most people.
    const char* const unit = traits.key == Key::wait && all_digits(word) ? "s" : "";
    return usage(error, name + " " + word, "a value goes behind an equals sign: " + name + "=" + word + unit + program);
}

// `cuslice help`, and `cuslice help run`.
int parse_topic(Words& rest, const Environment& environment, Arguments& arguments, ConfigError& error) {
    if (!rest.empty() && is_help(rest.back())) {
        arguments.help_all = rest.back() == "--help-all";
        rest.pop_back();
    }
    if (rest.empty())
        return 0;
    const std::string word = rest.back();
    rest.pop_back();
    if (word == "--man") {
        arguments.page = rest.empty() ? "cuslice" : rest.back();
        if (!rest.empty())
            rest.pop_back();
        if (arguments.page != "cuslice" && arguments.page != "cuslice.toml")
            return usage(error, arguments.page, "no such page: cuslice help --man [cuslice|cuslice.toml]");
    }
    if (word == "options" && !rest.empty() && rest.back() == "--json") {
        arguments.json = true;
        rest.pop_back();
    }
    if (!rest.empty())
        return usage(error, rest.back(), "not expected here: cuslice help [COMMAND]");
    if (!arguments.page.empty())
        return 0;
    if (word == "options" || word == "values") {
        arguments.shared_text = word;
        return 0;
    }
    const CommandName* const topic = find_command(word);
    if (topic == nullptr || topic->command == Command::query)
        return usage(error, word, explain_unknown_command({word}, environment));
    arguments.topic = topic->command;
    return 0;
}

// `cuslice completion bash`
int parse_shell(const Words& rest, Arguments& arguments, ConfigError& error) {
    const std::string shell = rest.empty() ? "" : rest.back();
    if (is_help(shell))
        return ask_for_help(Command::help, false, arguments);
    constexpr std::string_view kNames[] = {"profiles", "groups", "jobs", "pids"};
    if (shell == "names" && rest.size() == 2 && std::ranges::find(kNames, rest[0]) != std::end(kNames)) {
        arguments.names = rest[0];
        return 0;
    }
    arguments.shell = shell;
    const bool known = shell == "bash" || shell == "zsh" || shell == "fish";
    if (known && rest.size() == 1)
        return 0;
    return usage(error, "completion", "name your shell: cuslice completion bash, zsh or fish");
}

// `cuslice plot FILE... [-o OUT]`: what the words mean, the program knows that draws.
int parse_plot(const Words& rest, Arguments& arguments, ConfigError& error) {
    arguments.program.assign(rest.rbegin(), rest.rend());
    for (const std::string& word : arguments.program) {
        if (word == "--")
            break;
        if (word == "-V" || word == "--version")
            arguments.command = Command::version;
        if (is_help(word))
            ask_for_help(Command::plot, false, arguments);
        if (arguments.command != Command::plot)
            return 0;
    }
    return rest.empty() ? usage(error, "plot", "a recording is needed: cuslice plot FILE... [-o OUT]") : 0;
}

// `cuslice install --system [--root DIR]`, and the same of uninstall.
int parse_install(const Words& rest, Arguments& arguments, ConfigError& error) {
    const Command command = arguments.command;
    const std::string name(name_of(command)), usage_line = "cuslice " + name + " --system [--root DIR]";
    bool system = false;
    for (size_t i = rest.size(); i-- > 0;) {
        const std::string& word = rest[i];
        if (word == "-V" || word == "--version")
            return arguments.command = Command::version, 0;
        if (is_help(word))
            return ask_for_help(command, false, arguments);
        const bool together = word.starts_with("--root=");
        if (word == "--system") {
            system = true;
        } else if (word == "--root" || together) {
            if (!together && i == 0)
                return usage(error, word, "a value is needed after it: --root DIR");
            arguments.root = together ? word.substr(word.find('=') + 1) : rest[--i];
            if (arguments.root.empty())
                return usage(error, "--root", "a value is needed after it: --root DIR");
        } else {
            return usage(error, word, "not expected here: " + usage_line);
        }
    }
    return system ? 0 : usage(error, name, "--system is needed, as it changes the machine: " + usage_line);
}

bool parse_pid(const std::string& text, int& pid) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), pid);
    return failure == std::errc() && end == text.data() + text.size() && pid > 0;
}

// Shorter would be work for nobody, as no eye follows it, and longer is no live view.
bool parse_time(const std::string& text, uint64_t& milliseconds) {
    constexpr uint64_t kLeast = 100, kMost = 86'400'000;
    bool automatic = false;
    Reason unused;
    return text != "no" && parse_value(Key::idle_release, text, milliseconds, automatic, unused) &&
           milliseconds >= kLeast && milliseconds <= kMost;
}

// Checks the times given to top, and the combinations of its options.
int check_top(const CLI::App& app, const std::string& interval, const std::string& timeout, Arguments& arguments,
              ConfigError& error) {
    const std::pair<const char*, std::pair<const std::string&, uint64_t&>> times[] = {
        {"--interval", {interval, arguments.interval}}, {"--timeout", {timeout, arguments.timeout}}};
    for (const auto& [name, value] : times)
        if (app.count(name) != 0 && !parse_time(value.first, value.second)) {
            const std::string seconds = all_digits(value.first) ? "; did you mean " + value.first + "s" : "";
            return usage(error, name + (" " + value.first),
                         "a time from 100ms to 24h is needed: 500ms, 2s, 1m" + seconds);
        }
    if (arguments.stream && (arguments.once || arguments.json))
        return usage(error, "--stream", "give it or --once or --json, not both");
    if (app.count("--nodes") != 0) {
        if (arguments.nodes.empty())
            return usage(error, "--nodes", "names are needed: --nodes n1,n2");
        return arguments.stream ? usage(error, "--stream", "give it or --nodes, not both") : 0;
    }
    for (const char* const name : {"--over", "--launcher", "--timeout"})
        if (app.count(name) != 0)
            return usage(error, name, "needs --nodes as well");
    return 0;
}

int parse_options(Words words, Arguments& arguments, ConfigError& error) {
    const Command command = arguments.command;
    arguments.flags.clear();
    // An option at the very end meets the options' end, as any other does that lacks its value.
    words.insert(words.begin(), "--");
    Words rest = words;
    CLI::App app;
    app.prefix_command();
    app.set_version_flag("-V,--version", "");
    app.set_help_all_flag("--help-all", "");
    Switches switches;
    add_settings(app, command, words, rest, arguments.flags, switches, error);
    const auto add_own = [&](const std::string& name, const char* placeholder, std::string& into) {
        const auto take = [&, name, placeholder](const std::string& value) {
            into = value_of(name, placeholder, value, words, rest, error);
        };
        return app.add_option_function<std::string>(name, take)->trigger_on_parse();
    };
    if (command == Command::set || command == Command::ps)
        add_own("--job", "NAME", arguments.job);
    if (command == Command::cdi) {
        const auto take = [&](const std::string& value) {
            arguments.output = value_of("--output", "FILE", value, words, rest, error);
            if (!arguments.output.empty())
                return;
            error.set("--output", "a file is needed: --output FILE");
            throw CLI::RuntimeError(kUsage);
        };
        app.add_option_function<std::string>("-o,--output", take)->trigger_on_parse();
    }
    if (command == Command::jupyter) {
        add_own("--name", "NAME", arguments.name);
        add_own("--display-name", "TEXT", arguments.display_name);
        add_own("--python", "PATH", arguments.python);
        add_own("--prefix", "DIR", arguments.prefix);
    }
    std::string pid;
    if (command == Command::stats)
        app.add_option("PID", pid);
    if (command == Command::config)
        add_own("--explain", "PID", pid);
    std::string interval, timeout;
    if (command == Command::top) {
        add_own("--interval", "TIME", interval);
        add_own("--nodes", "LIST", arguments.nodes);
        add_own("--over", "COMMAND", arguments.over);
        add_own("--launcher", "PATH", arguments.launcher);
        add_own("--timeout", "TIME", timeout);
        app.add_flag("--stream", arguments.stream)->disable_flag_override();
    }
    const auto no_value = [&](const std::string&) {
        if (words[rest.size()] == "--json=")
            throw CLI::ArgumentMismatch("--json");
    };
    if (takes_own(command, "json"))
        app.add_flag("--json", arguments.json)->each(no_value)->trigger_on_parse()->disable_flag_override();
    if (command == Command::ps)
        app.add_flag("--prometheus", arguments.prometheus)->disable_flag_override();
    if (command == Command::ps)
        app.add_flag("--wide", arguments.wide)->disable_flag_override();
    if (command == Command::top)
        app.add_flag("--once", arguments.once)->disable_flag_override();
    try {
        app.parse(rest);
    } catch (const CLI::CallForHelp&) {
        return ask_for_help(command, false, arguments);
    } catch (const CLI::CallForAllHelp&) {
        return ask_for_help(command, true, arguments);
    } catch (const CLI::CallForVersion&) {
        arguments.command = Command::version;
        return 0;
    } catch (const CLI::RuntimeError& refused) {
        return refused.get_exit_code();
    } catch (const CLI::ArgumentMismatch& mismatch) {
        const std::string what = mismatch.what();
        const auto names = [&](const char* option) { return what.find(option) != what.npos; };
        return usage(error,
                     names("once")         ? "--once"
                     : names("stream")     ? "--stream"
                     : names("prometheus") ? "--prometheus"
                     : names("wide")       ? "--wide"
                                           : "--json",
                     "takes no value");
    }
    for (const auto& [key, given] : switches)
        if (app.count("--" + std::string(traits_of(key).name)))
            arguments.flags.push_back({key, given.empty ? "" : given.value == "true" ? "yes" : given.value});
    // The line's end was put behind it.
    const std::string& last = words[std::min(rest.size(), words.size() - 1)];
    bool taken = false;
    const KeyTraits* const before = takes_for_value(command, last, rest, taken);
    if (taken) {
        // Read again, with the value where CLI11 takes it.
        const size_t at = rest.size();
        words[at] += "=" + words[at - 1];
        words.erase(words.begin() + static_cast<ptrdiff_t>(at) - 1);
        words.erase(words.begin());
        return parse_options(std::move(words), arguments, error);
    }
    if (before != nullptr)
        return refuse_value(command, *before, rest.back(), error);
    rest.erase(rest.begin());
    if (!rest.empty() && rest.back() == "--") {
        rest.pop_back();
        arguments.dashes = true;
    } else if (!rest.empty() && rest.back().starts_with("-") && rest.back() != "-") {
        return refuse_option(command, rest.back(), error);
    } else if (const std::string option = rest.empty() ? "" : option_with_dash(rest.back()); !option.empty()) {
        return usage(error, rest.back(), "begins with a dash instead of hyphens; did you mean " + option);
    }
    if (arguments.json && arguments.prometheus)
        return usage(error, "--prometheus", "give it or --json, not both");
    if (arguments.wide && (arguments.json || arguments.prometheus || app.count("--job") != 0))
        return usage(error, "--wide", "means nothing without the table: leave out --json, --prometheus and --job");
    if (command == Command::ps && app.count("--job") != 0) {
        if (arguments.job.empty())
            return usage(error, "--job", "a name is needed: cuslice ps --job NAME");
        if (arguments.prometheus)
            return usage(error, "--prometheus", "give it or --job, not both");
    }
    if (command == Command::stats && !parse_pid(pid, arguments.pid))
        return usage(error, pid.empty() ? "stats" : pid, "a process id is needed: cuslice stats PID");
    if (command == Command::config && app.count("--explain") != 0) {
        if (!parse_pid(pid, arguments.pid))
            return usage(error, "--explain " + pid, "a process id is needed: cuslice config --explain PID");
        if (!arguments.flags.empty())
            return usage(error, "--" + std::string(traits_of(arguments.flags[0].key).name),
                         "not with --explain, which shows only the rules of the system");
    }
    if (command == Command::top)
        if (const int code = check_top(app, interval, timeout, arguments, error); code != 0)
            return code;
    if (!takes_program(command)) {
        if (rest.empty())
            return 0;
        std::string meant;
        if (command == Command::demo)
            meant = "; to run a program of your own: cuslice run -- " + rest.back();
        if (command == Command::ps && all_digits(rest.back()))
            meant = "; cuslice stats " + rest.back() + " shows a process";
        return usage(error, rest.back(), "not expected here: this command takes options only" + meant);
    }
    if (rest.empty() && command == Command::run)
        return usage(error, "run", "a program is needed: cuslice run [options] -- program args");
    arguments.program.assign(rest.rbegin(), rest.rend());
    return 0;
}

// `cuslice jupyter install [options]`.
int parse_jupyter(Words rest, Arguments& arguments, ConfigError& error) {
    const std::string first = rest.empty() ? "" : rest.back();
    if (is_help(first))
        return ask_for_help(Command::jupyter, first == "--help-all", arguments);
    if (first == "-V" || first == "--version")
        return arguments.command = Command::version, 0;
    if (first != "install")
        return usage(error, "jupyter", "say what to do: cuslice jupyter install [options]");
    rest.pop_back();
    return parse_options(std::move(rest), arguments, error);
}

}  // namespace

bool takes(Command command, Key key) {
    const uint8_t takers = traits_of(key).takers;
    switch (command) {
        case Command::ps:
        case Command::stats:
            return takers & kListings;
        case Command::top:
            return takers & kTop;
        case Command::set:
            return takers & kSet;
        case Command::cdi:
            return takers & kContainers;
        case Command::plot:
        case Command::install:
        case Command::uninstall:
        case Command::completion:
        case Command::help:
        case Command::version:
            return false;
        default:
            return true;
    }
}

int parse_arguments(const std::vector<std::string>& words, const Environment& environment, Arguments& arguments,
                    ConfigError& error) {
    CLI::App app;
    app.prefix_command();
    app.set_version_flag("-V,--version", "");
    app.set_help_all_flag("--help-all", "");
    Words rest(words.rbegin(), words.rend());
    try {
        app.parse(rest);
    } catch (const CLI::CallForHelp&) {
        return 0;
    } catch (const CLI::CallForAllHelp&) {
        arguments.help_all = true;
        return 0;
    } catch (const CLI::CallForVersion&) {
        arguments.command = Command::version;
        return 0;
    }
    if (rest.empty())
        return usage(error, "no command", list_commands());
    const CommandName* const command = find_command(rest.back());
    if (command == nullptr)
        return usage(error, rest.back(), explain_unknown_command(words, environment));
    arguments.command = command->command;
    rest.pop_back();
    if (arguments.command == Command::help)
        return parse_topic(rest, environment, arguments, error);
    if (arguments.command == Command::completion)
        return parse_shell(rest, arguments, error);
    if (arguments.command == Command::plot)
        return parse_plot(rest, arguments, error);
    if (arguments.command == Command::jupyter)
        return parse_jupyter(std::move(rest), arguments, error);
    if (arguments.command == Command::install || arguments.command == Command::uninstall)
        return parse_install(rest, arguments, error);
    if (arguments.command == Command::version)
        return rest.empty() ? 0 : usage(error, rest.back(), "not expected here: cuslice version stands alone");
    if (arguments.command != Command::query)
        return parse_options(std::move(rest), arguments, error);
    arguments.query.assign(rest.rbegin(), rest.rend());
    return 0;
}

}  // namespace cuslice::cli
