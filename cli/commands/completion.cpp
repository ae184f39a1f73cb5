// cuslice completion: scripts that complete commands, options and values, out of the one list of keys.
#include <cstdio>

#include "cli/commands.h"
#include "cli/commands/completion_names.h"

namespace cuslice::cli {
namespace {

/// Candidates for an option's value.
struct Values {
    /// Words, with spaces between them; empty where only the user knows.
    std::string_view words;
    bool files = false, folders = false;
    /// A kind of names that the launcher is asked for when somebody completes (completion_names.h); empty: none.
    std::string_view names = {};
};

Values values_of(Key key) {
    switch (key) {
        case Key::allocator:
            return {"direct growth prealloc"};
        case Key::admission:
            return {"launch first-context"};
        case Key::free_mode:
            return {"strict deferred"};
        case Key::headroom:
            return {"auto"};
        case Key::idle_release:
            return {"no"};
        case Key::gpus:
            return {"any all none"};
        case Key::log:
            return {"warn info debug"};
        case Key::fake_kernels:
            return {"skip error"};
        case Key::fake_machine:
            return {"new"};
        case Key::no_framework_env:
        case Key::oversubscribe:
        case Key::per_process:
        case Key::wait:
        case Key::summary:
            return {"yes no"};
        case Key::config:
        case Key::driver:
        case Key::record:
            return {.files = true};
        case Key::fake:
            return {.files = true, .names = "profiles"};
        case Key::group:
            return {.names = "groups"};
        case Key::dir:
            return {.folders = true};
        case Key::fraction:
        case Key::limit:
        case Key::split:
        case Key::group_limit:
            return {};
    }
    return {};
}

/// The options of a command that are no settings.
struct OwnOption {
    Command command;
    std::string_view name, placeholder, help;
    bool file = false, process = false;
};
constexpr OwnOption kOwnOptions[] = {
    {Command::demo, "json", "", "print JSON"},
    {Command::doctor, "json", "", "print JSON"},
    {Command::devices, "json", "", "print JSON"},
    {Command::config, "explain", "PID", "print which rule holds for this process", false, true},
    {Command::config, "json", "", "print JSON"},
    {Command::ps, "json", "", "print JSON"},
    {Command::ps, "prometheus", "", "print gauges for Prometheus"},
    {Command::ps, "wide", "", "print lines and commands as long as they are"},
    {Command::ps, "job", "NAME", "print the most that this job has held"},
    {Command::stats, "json", "", "print JSON"},
    {Command::top, "interval", "TIME", "the time from one frame to the next"},
    {Command::top, "once", "", "print one frame"},
    {Command::top, "json", "", "print JSON"},
    {Command::top, "stream", "", "print JSON again and again, a line each"},
    {Command::top, "nodes", "LIST", "the nodes to ask, as n1,n2 or gpu[01-04]"},
    {Command::top, "over", "COMMAND", "the command that asks a node"},
    {Command::top, "launcher", "PATH", "where cuslice is on the nodes"},
    {Command::top, "timeout", "TIME", "the time in which a node has to answer"},
    {Command::set, "job", "NAME", "the job, as cuslice ps names it"},
    {Command::cdi, "output", "FILE", "the file to write", true},
    {Command::install, "system", "", "change the machine"},
    {Command::install, "root", "DIR", "an image's files", true},
    {Command::uninstall, "system", "", "change the machine"},
    {Command::uninstall, "root", "DIR", "an image's files", true},
    {Command::plot, "output", "OUT", "the picture: OUT.html, OUT.svg or OUT.png", true},
};

bool has_options(Command command) {
    return command != Command::help && command != Command::version && command != Command::completion;
}

std::string all_commands() {
    std::string names;
    for (const CommandName& command : command_names()) names.append(names.empty() ? "" : " ").append(command.name);
    return names;
}

// In single quotes for a shell that has no escapes within them (sh, zsh).
std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) c == '\'' ? out.append("'\\''") : out.append(1, c);
    return out + "'";
}

std::string bash_options(Command command) {
    std::string options = "--help";
    for (const KeyTraits& traits : all_keys())
        if (takes(command, traits.key)) options.append(" --").append(traits.name);
    for (const OwnOption& own : kOwnOptions)
        if (own.command == command) options.append(" --").append(own.name);
    return options;
}

std::string bash() {
    std::string
        with_value =
            "--job | --interval | --nodes | --over | --launcher | --timeout | --explain | --output | -o | --root",
        values, options;
    for (const KeyTraits& traits : all_keys()) {
        const std::string name = "--" + std::string(traits.name);
        const Values values_here = values_of(traits.key);
        if (!traits.stands_alone) with_value += " | " + name;
        values += "        " + name + ") ";
        if (traits.stands_alone) values += "((equals)) && ";
        if (!values_here.names.empty())
            values += "_cuslice_names " + std::string(values_here.names) + "; return ;;\n";
        else if (values_here.files)
            values += "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
        else if (values_here.folders)
            values += "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n";
        else
            values +=
                "{ COMPREPLY=($(compgen -W '" + std::string(values_here.words) + "' -- \"$word\")); return; } ;;\n";
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
           all_commands() + R"( --help --version' -- "$word"))
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
        --job) _cuslice_names jobs; return ;;
        --interval | --nodes | --over | --launcher | --timeout) return ;;
        --explain) options=$(cd /proc && echo [0-9]*); COMPREPLY=($(compgen -W "$options" -- "$word")); return ;;
        --output | -o | --root) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$word")); return ;;
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
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_option(const KeyTraits& traits) {
    const Values values = values_of(traits.key);
    std::string option = "--" + std::string(traits.name) + (traits.stands_alone ? "=-[" : "=[");
    option += zsh_text(traits.help) + (traits.stands_alone ? "]::" : "]:") + zsh_text(traits.placeholder) + ":";
    if (values.files && values.names.empty()) option += "_files";
    if (!values.names.empty()) option += "_cuslice_names " + std::string(values.names);
    if (values.folders) option += "_files -/";
    if (!values.words.empty()) option += "(" + std::string(values.words) + ")";
    if (option.ends_with(':')) option += ' ';
    return quoted(option);
}

std::string zsh() {
    std::string commands, cases;
    for (const CommandName& command : command_names()) {
        commands += "    " + quoted(std::string(command.name) + ":" + zsh_text(command.summary)) + "\n";
        if (!has_options(command.command)) continue;
        cases += "    " + std::string(command.name) + ")\n      _arguments -S '(- *)'{-h,--help}'[print help]'";
        for (const KeyTraits& traits : all_keys())
            if (takes(command.command, traits.key)) cases += " \\\n        " + zsh_option(traits);
        for (const OwnOption& own : kOwnOptions)
            if (own.command == command.command)
                cases +=
                    " \\\n        " +
                    quoted("--" + std::string(own.name) + (own.placeholder.empty() ? "[" : "=[") + zsh_text(own.help) +
                           "]" + (own.placeholder.empty() ? "" : ":" + std::string(own.placeholder) + ":") +
                           (own.file                  ? "_files"
                            : own.process             ? "_pids"
                            : own.name == "job"       ? "_cuslice_names jobs"
                            : own.placeholder.empty() ? ""
                                                      : " "));
        if (command.command == Command::run)
            cases += " \\\n        '(-):program: _command_names -e' \\\n        '*::arguments: _normal'";
        if (command.command == Command::plot) cases += " \\\n        '*:recording:_files'";
        if (command.command == Command::stats) cases += " \\\n        ':process:_cuslice_names pids'";
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
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out + "'";
}

std::string fish_names(std::string_view kind) {
    return "'(cuslice completion names " + std::string(kind) + " 2>/dev/null)'";
}

std::string fish() {
    std::string script = R"(# Completion of cuslice for fish, as `cuslice completion fish` prints it.
complete -c cuslice -f
)";
    for (const CommandName& command : command_names())
        script += "complete -c cuslice -n __fish_use_subcommand -a " + std::string(command.name) + " -d " +
                  fish_quoted(command.summary) + "\n";
    for (const CommandName& command : command_names()) {
        if (!has_options(command.command)) continue;
        const std::string start =
            "complete -c cuslice -n '__fish_seen_subcommand_from " + std::string(command.name) + "' -l ";
        for (const KeyTraits& traits : all_keys()) {
            if (!takes(command.command, traits.key)) continue;
            const Values values = values_of(traits.key);
            script += start + std::string(traits.name);
            if (!traits.stands_alone) script += values.files ? " -rF" : " -x";
            if (values.folders) script += " -a '(__fish_complete_directories)'";
            if (!values.names.empty()) script += " -a " + fish_names(values.names);
            if (!values.words.empty() && !traits.stands_alone) script += " -a " + fish_quoted(values.words);
            script += " -d " + fish_quoted(traits.help) + "\n";
        }
        for (const OwnOption& own : kOwnOptions)
            if (own.command == command.command)
                script += start + std::string(own.name) +
                          (own.file                  ? " -rF"
                           : own.process             ? " -x -a '(__fish_complete_pids)'"
                           : own.name == "job"       ? " -x -a " + fish_names("jobs")
                           : own.placeholder.empty() ? ""
                                                     : " -x") +
                          " -d " + fish_quoted(own.help) + "\n";
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
        for (const std::string& name : completion_names(kind, invocation)) std::puts(name.c_str());
        return 0;
    }
    const std::string& shell = invocation.arguments.shell;
    std::fputs((shell == "bash" ? bash() : shell == "zsh" ? zsh() : fish()).c_str(), stdout);
    return 0;
}

}  // namespace cuslice::cli
