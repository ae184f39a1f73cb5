// SPDX-License-Identifier: Apache-2.0
// cuslice top: what the GPUs of the machine, or of several, are used for, live.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

#include "cli/commands.h"
#include "cli/gpus/machine.h"
#include "cli/gpus/virtual_gpus.h"
#include "cli/ledger/dead_stats.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/report.h"
#include "cli/text/terminal.h"
#include "cli/top/canvas.h"
#include "cli/top/live.h"
#include "cli/top/node_names.h"
#include "cli/top/nodes.h"
#include "cli/top/one_machine.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"

namespace cuslice::cli {
namespace {

// Draws as wide as the terminal is, even one that is too narrow or too dumb for the live view.
void print_frame(const std::function<top::Lines(const top::Look&)>& draw) {
    const top::Look look{output_columns(), locale_is_utf8()};
    const top::Lines lines = draw(look);
    const bool colours = ::isatty(STDOUT_FILENO) != 0 && terminal_has_colours();
    top::TextCanvas canvas(look.utf8, colours);
    top::draw(lines, canvas);
    canvas.flush();
}

bool is_live(const Arguments& arguments) { return !arguments.json && !arguments.once && top::is_terminal(); }

constexpr std::string_view kSlurm = "@slurm", kPlace = "{}";
// Nothing that asks at the terminal or listens anywhere, and an end where the other machine says nothing any more.
constexpr std::string_view kSsh =
    "ssh -xT -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=10 -oClearAllForwardings=yes";
// A step beside those that run, with what they have.
constexpr std::string_view kSrun =
    "srun -Q --overlap --input=none --mpi=none --cpu-bind=none -N1 -n1 -c1 --ntasks-per-node=1 -w";

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (size_t begin; (begin = text.find_first_not_of(' ')) != text.npos;) {
        text.remove_prefix(begin);
        words.emplace_back(text.substr(0, text.find(' ')));
        text.remove_prefix(words.back().size());
    }
    return words;
}

int refuse(const std::string& option, const std::string& why) { return fail("--" + option + ": " + why, kUsage); }

// Builds the command for a node, which a shell there may parse. Returns 0, or the exit code.
int command_on_node(const Arguments& arguments, bool live, std::vector<std::string>& words) {
    words = {arguments.launcher, "top"};
    if (live)
        words.insert(words.end(), {"--stream", "--interval=" + std::to_string(arguments.interval) + "ms"});
    else
        words.emplace_back("--json");
    if (!top::is_plain_word(arguments.launcher) || arguments.launcher[0] == '-')
        return refuse("launcher", "a path of letters, digits and _./:,@%+=- is needed, for the node's shell");
    for (const Flag& flag : arguments.flags) {
        const std::string name(traits_of(flag.key).name);
        if (!top::is_plain_word(flag.value))
            return refuse(name,
                          "with --nodes, a value of letters, digits and _./:,@%+=- is needed, for a node's shell");
        words.push_back("--" + name + "=" + flag.value);
    }
    return 0;
}

// The words that bring it to `node`.
std::vector<std::string> command_for(const std::string& node, std::vector<std::string> over,
                                     const std::vector<std::string>& on_node) {
    bool placed = false;
    for (std::string& word : over)
        for (size_t at = 0; (at = word.find(kPlace, at)) != word.npos; at += node.size(), placed = true)
            word.replace(at, kPlace.size(), node);
    if (!placed)
        over.push_back(node);
    over.insert(over.end(), on_node.begin(), on_node.end());
    return over;
}

int show_nodes(const Invocation& invocation) {
    const Arguments& arguments = invocation.arguments;
    std::string list = arguments.nodes, error;
    const bool slurm = list == kSlurm;
    if (slurm) {
        list = invocation.environment.get("SLURM_JOB_NODELIST").value_or("");
        if (list.empty())
            return refuse("nodes", "@slurm: this is not in a job of Slurm (SLURM_JOB_NODELIST is not set)");
    }
    std::vector<std::string> names, on_node;
    if (!top::parse_nodes(list, names, error))
        return refuse("nodes", error);
    const std::vector<std::string> over = words_of(!arguments.over.empty() ? arguments.over : slurm ? kSrun : kSsh);
    if (over.empty() || over[0].find(kPlace) != std::string::npos)
        return refuse("over", "a program is needed first: --over \"ssh -p 2222 {}\"");
    const bool live = is_live(arguments);
    if (const int code = command_on_node(arguments, live, on_node); code != 0)
        return code;

    top::Nodes nodes;
    for (const std::string& name : names)
        nodes.add(name, {command_for(name, over, on_node), live, arguments.interval, arguments.timeout});
    if (live) {
        top::show_live(nodes, arguments.interval, {});
        return 0;
    }
    nodes.ask_once(top::Signals());
    if (arguments.json)
        std::fputs(nodes.document().dump(2, ' ', true, Json::error_handler_t::replace).append("\n").c_str(), stdout);
    else
        print_frame([&](const top::Look& shape) { return nodes.draw(shape, {}); });
    // A frame has them.
    const std::vector<std::string> failures = nodes.failures();
    if (arguments.json)
        for (const std::string& text : failures)
            warn("top: " + text);
    return failures.empty() ? 0 : kNoGpu;
}

// The words of `cuslice set` for this job or group, with what tells this command its folder.
Invocation setting(const Invocation& invocation, const top::Target& target, const std::string& limit) {
    Invocation set = invocation;
    set.arguments.command = Command::set;
    std::erase_if(set.arguments.flags,
                  [](const Flag& flag) { return flag.key != Key::dir && flag.key != Key::config; });
    if (target.kind == "group")
        set.arguments.flags.push_back({Key::group, target.name});
    else
        set.arguments.job = target.name;
    set.arguments.flags.push_back({Key::limit, target.gpu + "=" + limit});
    return set;
}

// The last line that `command` writes, in a child process: this one's terminal is drawn on.
top::Span say_of_child(const std::function<int()>& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return {std::strerror(errno), Tone::warning};
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        const int code = command();
        std::fflush(stdout);
        ::_exit(code);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[512];
    for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0 || (count < 0 && errno == EINTR);)
        text.append(buffer, count > 0 ? static_cast<size_t>(count) : 0);
    ::close(ends[0]);
    int status = -1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0)
        return {"no process could be started", Tone::warning};
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    text.erase(0, text.rfind('\n') + 1);
    return {text, status == 0 ? Tone::heading : Tone::warning};
}

}  // namespace

int show_top(const Invocation& invocation) {
    const Arguments& arguments = invocation.arguments;
    if (!arguments.nodes.empty())
        return show_nodes(invocation);
    ConfigError error;
    Launch launch;
    if (!load_launch(launch, invocation, error))
        return fail(error, kConfig);
    const Settings& settings = launch.settings;
    Environment environment = invocation.environment;
    // Inside a launcher that has split GPUs, those that there are.
    const VirtualGpus virtual_gpus(settings, environment);
    const std::string folder = sharing_folder(settings, invocation.environment);
    const auto ask = [&] { return Machine(virtual_gpus.physical(), settings, launch.installation).all_with_sensors(); };
    const auto look = [&](const Gpus* gpus) {
        remove_dead_stats(folder);
        return top::take_snapshot(settings, folder, gpus);
    };
    if (arguments.stream || is_live(arguments)) {
        top::OneMachine machine(ask, look);
        const auto set = [&](const top::Target& target, const std::string& limit) {
            return say_of_child([&] { return set_limit(setting(invocation, target, limit)); });
        };
        arguments.stream ? machine.stream(arguments.interval) : top::show_live(machine, arguments.interval, set);
        return 0;
    }
    const Gpus gpus = ask();
    const top::Snapshot snapshot = look(&gpus);
    if (arguments.json)
        std::fputs(json_text(json_of(snapshot)).c_str(), stdout);
    else
        print_frame([&](const top::Look& shape) { return draw(snapshot, shape); });
    const bool listed = snapshot.gpus_failure.empty();
    // A frame has them.
    if (arguments.json) {
        for (const std::string& text : snapshot.holders.failures)
            warn("top: " + text);
        if (!listed)
            warn("no GPU can be listed: " + snapshot.gpus_failure);
    }
    return listed && !snapshot.holders.own_failed ? 0 : kNoGpu;
}

}  // namespace cuslice::cli
