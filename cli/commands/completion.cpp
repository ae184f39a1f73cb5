// SPDX-License-Identifier: Apache-2.0
// cuslice completion: scripts that complete commands, options and values, out of the one list of keys.
#include <cstdio>
#include <set>

#include "cli/commands.h"
#include "cli/commands/completion_names.h"
#include "cli/settings/own_options.h"

namespace cuslice::cli {
namespace {

/// The kind of names that completion_names.h asks for; empty: none.
std::string_view names_of(const KeyTraits& traits) {
    if (traits.completes == Completes::groups)
        return "groups";
    return traits.completes == Completes::profiles ? "profiles" : "";
}

bool completes_files(const KeyTraits& traits) {
    return traits.completes == Completes::files || traits.completes == Completes::profiles;
}

bool has_options(Command command) {
    return command != Command::help && command != Command::version && command != Command::completion;
}

std::string all_commands() {
    std::string names;
    for (const CommandName& command : command_names())
        names.append(names.empty() ? "" : " ").append(command.name);
    return names;
}

// In single quotes for a shell that has no escapes within them (sh, zsh).
std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text)
        c == '\'' ? out.append("'\\''") : out.append(1, c);
    return out + "'";
}

std::string bash_options(Command command) {
    std::string options = "--help --help-all";
    for (const KeyTraits& traits : all_keys())
        if (takes(command, traits.key))
            options.append(" --").append(traits.name);
    for (const OwnOption& own : own_options())
        if (own.is_of(command))
            options.append(" --").append(own.name);
    return options;
}

// "--output | -o", as a pattern.
std::string bash_pattern(const OwnOption& own) {
    const std::string name = "--" + std::string(own.name);
    return own.letter.empty() ? name : name + " | -" + std::string(own.letter);
}

// One case for each name of commands' own options: those of the same name take the same.
std::string bash_own_values(std::string& with_value) {
    constexpr std::string_view kValues[] = {
        "return ;;\n", "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
        "_cuslice_names jobs; return ;;\n",
        "options=$(cd /proc && echo [0-9]*); COMPREPLY=($(compgen -W \"$options\" -- \"$word\")); return ;;\n"};
    std::string values;
    std::set<std::string_view> seen;
    for (const OwnOption& own : own_options()) {
        if (own.placeholder.empty() || !seen.insert(own.name).second)
            continue;
        with_value += (with_value.empty() ? "" : " | ") + bash_pattern(own);
        values += "        " + bash_pattern(own) + ") ";
        values += kValues[static_cast<size_t>(own.names)];
    }
    return values;
}

std::string bash_values(const KeyTraits& traits) {
    if (const std::string_view names = names_of(traits); !names.empty())
        return "_cuslice_names " + std::string(names) + "; return ;;\n";
    if (completes_files(traits))
        return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
    if (traits.completes == Completes::folders)
        return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n";
    return "{ COMPREPLY=($(compgen -W '" + std::string(traits.words) + "' -- \"$word\")); return; } ;;\n";
}

std::string bash() {
    std::string with_value, options;
    std::string values = bash_own_values(with_value);
    for (const KeyTraits& traits : all_keys()) {
        const std::string name = "--" + std::string(traits.name);
        if (!traits.stands_alone)
            with_value += " | " + name;
        values += "        " + name + ") " + (traits.stands_alone ? "((equals)) && " : "") + bash_values(traits);
    }
    for (const CommandName& command : command_names())
        if (has_options(command.command))
            options +=
                "        " + std::string(command.name) + ") options='" + bash_options(command.command) + "' ;;\n";
    return R"(# Completion of cuslice for bash, as `cuslice completion bash` prints it.
# The launcher knows what there is now; a list of fake GPUs goes on behind 4x and behind a comma.
_cuslice_names() {
    local names start=
    names=$("${COMP_WORDS[0]}" completion names "$1" 2>/dev/null)
    [[ $1 == profiles && $word =~ ^(.*,)?([0-9]+x)? ]] && start=${BASH_REMATCH[0]}
    COMPREPLY=($(compgen -P "$start" -W "$names" -- "${word#"$start"}"))
    [[ $1 != profiles ]] && return
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$word"))
}
_cuslice() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local at=2 equals=0 program=0 options=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W ')" +
           all_commands() + R"( --help --help-all --version' -- "$word"))
        return
    fi
    # Where the program begins. Bash has an equals sign as a word of its own.
    while ((at < COMP_CWORD)); do
        case ${COMP_WORDS[at]} in
            --) ((at += 1, program = 1)); break ;;
            )" +
           with_value +
           R"()
                [[ ${COMP_WORDS[at + 1]} == = ]] && ((at += 1))
                ((at += 2)) ;;
            =) ((at += 2)) ;;
            -*) ((at += 1)) ;;
            *) program=1; break ;;
        esac
    done
    if [[ $command == run ]] && ((program)); then
        if ((at == COMP_CWORD)); then
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -c -f -- "$word"))
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        else
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$word"))
        fi
        return
    fi
    if [[ $word == = ]]; then
        word= equals=1
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]} equals=1
    fi
    case $before in
)" + values +
           R"(    esac
    case $command in
)" + options +
           R"(        help) options=')" + all_commands() + R"( options values' ;;
        completion) options='bash zsh fish' ;;
    esac
    if [[ $command == stats && $word != -* ]]; then
        _cuslice_names pids
        return
    fi
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    [[ $command == run && $word != -* ]] && COMPREPLY+=($(compgen -c -- "$word"))
    if [[ $command == plot && $word != -* ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$word"))
    fi
    return 0
}
complete -F _cuslice cuslice
)";
}

// In an option's specification, brackets and colons divide.
std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\')
            out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_option(const KeyTraits& traits) {
    std::string option = "--" + std::string(traits.name) + (traits.stands_alone ? "=-[" : "=[");
    option += zsh_text(traits.help) + (traits.stands_alone ? "]::" : "]:") + zsh_text(traits.placeholder) + ":";
    const std::string_view names = names_of(traits);
    if (!names.empty())
        option += "_cuslice_names " + std::string(names);
    else if (completes_files(traits))
        option += "_files";
    else if (traits.completes == Completes::folders)
        option += "_files -/";
    else if (!traits.words.empty())
        option += "(" + std::string(traits.words) + ")";
    if (option.ends_with(':'))
        option += ' ';
    return quoted(option);
}

std::string zsh_option(const OwnOption& own) {
    constexpr std::string_view kNames[] = {" ", "_files", "_cuslice_names jobs", "_pids"};
    const std::string start = "--" + std::string(own.name), help = zsh_text(own.help);
    if (own.placeholder.empty())
        return quoted(start + "[" + help + "]");
    return quoted(start + "=[" + help + "]:" + std::string(own.placeholder) + ":" +
                  std::string(kNames[static_cast<size_t>(own.names)]));
}

std::string zsh() {
    std::string commands, cases;
    for (const CommandName& command : command_names()) {
        commands += "    " + quoted(std::string(command.name) + ":" + zsh_text(command.summary)) + "\n";
        if (!has_options(command.command))
            continue;
        cases +=
            "    " + std::string(command.name) + ")\n      _arguments -S '(- *)'{-h,--help,--help-all}'[print help]'";
        for (const KeyTraits& traits : all_keys())
            if (takes(command.command, traits.key))
                cases += " \\\n        " + zsh_option(traits);
        for (const OwnOption& own : own_options())
            if (own.is_of(command.command))
                cases += " \\\n        " + zsh_option(own);
        if (command.command == Command::run)
            cases += " \\\n        '(-):program: _command_names -e' \\\n        '*::arguments: _normal'";
        if (command.command == Command::plot)
            cases += " \\\n        '*:recording:_files'";
        if (command.command == Command::stats)
            cases += " \\\n        ':process:_cuslice_names pids'";
        cases += " ;;\n";
    }
    return R"(#compdef cuslice
# Completion of cuslice for zsh, as `cuslice completion zsh` prints it.
_cuslice_names() {
  local text=$($launcher completion names ${@[-1]} 2>/dev/null)
  local -a names=(${(f)text})
  if [[ ${@[-1]} == profiles ]]; then
    _files
    compset -P '*,'
    compset -P '[0-9]#x'
  fi
  compadd -a names
}
_cuslice() {
  local launcher=${(Q)words[1]}
  local -a commands=(
)" + commands +
           R"(  )
  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT -= 1 ))
  case $command in
)" + cases +
           R"(    help)
      commands+=(options:'explain all options' values:'explain their values')
      _describe -t commands command commands ;;
    completion)
      _values shell bash zsh fish ;;
  esac
}
# Installed as a function, or read by eval.
if [[ $funcstack[1] == _cuslice ]]; then _cuslice "$@"; else compdef _cuslice cuslice; fi
)";
}

std::string fish_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\')
            out += '\\';
        out += c;
    }
    return out + "'";
}

std::string fish_names(std::string_view kind) {
    return "'(cuslice completion names " + std::string(kind) + " 2>/dev/null)'";
}

std::string fish_values(const KeyTraits& traits) {
    std::string text;
    if (!traits.stands_alone)
        text += completes_files(traits) ? " -rF" : " -x";
    if (traits.completes == Completes::folders)
        text += " -a '(__fish_complete_directories)'";
    if (const std::string_view names = names_of(traits); !names.empty())
        text += " -a " + fish_names(names);
    if (!traits.words.empty() && !traits.stands_alone)
        text += " -a " + fish_quoted(traits.words);
    return text;
}

std::string fish_values(const OwnOption& own) {
    if (own.placeholder.empty())
        return "";
    switch (own.names) {
        case OwnNames::files:
            return " -rF";
        case OwnNames::jobs:
            return " -x -a " + fish_names("jobs");
        case OwnNames::processes:
            return " -x -a '(__fish_complete_pids)'";
        default:
            return " -x";
    }
}

std::string fish() {
    std::string script = R"(# Completion of cuslice for fish, as `cuslice completion fish` prints it.
complete -c cuslice -f
)";
    for (const CommandName& command : command_names())
        script += "complete -c cuslice -n __fish_use_subcommand -a " + std::string(command.name) + " -d " +
                  fish_quoted(command.summary) + "\n";
    for (const CommandName& command : command_names()) {
        if (!has_options(command.command))
            continue;
        const std::string start =
            "complete -c cuslice -n '__fish_seen_subcommand_from " + std::string(command.name) + "' -l ";
        for (const KeyTraits& traits : all_keys()) {
            if (!takes(command.command, traits.key))
                continue;
            script += start + std::string(traits.name) + fish_values(traits);
            script += " -d " + fish_quoted(traits.help) + "\n";
        }
        for (const OwnOption& own : own_options())
            if (own.is_of(command.command))
                script += start + std::string(own.name) + fish_values(own) + " -d " + fish_quoted(own.help) + "\n";
        script += start + "help-all -d 'print help, with each setting explained'\n";
        script += start + "help -d 'print help'\n";
    }
    return script +
           R"(complete -c cuslice -n '__fish_seen_subcommand_from run' -x -a '(__fish_complete_subcommand --fcs-skip=2)'
complete -c cuslice -n '__fish_seen_subcommand_from plot' -F
complete -c cuslice -n '__fish_seen_subcommand_from stats' -x -a )" +
           fish_names("pids") + R"(
complete -c cuslice -n '__fish_seen_subcommand_from help' -x -a ')" +
           all_commands() + R"( options values'
complete -c cuslice -n '__fish_seen_subcommand_from completion' -x -a 'bash zsh fish'
)";
}

}  // namespace

int print_completion(const Invocation& invocation) {
    if (const std::string& kind = invocation.arguments.names; !kind.empty()) {
        for (const std::string& name : completion_names(kind, invocation))
            std::puts(name.c_str());
        return 0;
    }
    const std::string& shell = invocation.arguments.shell;
    std::fputs((shell == "bash" ? bash() : shell == "zsh" ? zsh() : fish()).c_str(), stdout);
    return 0;
}

}  // namespace cuslice::cli
