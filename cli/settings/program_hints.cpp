// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/program_hints.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "cli/launch/elf_file.h"
#include "cli/launch/program.h"
#include "cli/text/exit_codes.h"

namespace cuslice::cli {
namespace {

struct Client {
    std::string_view command;
    std::string_view why;
};

constexpr std::string_view kContainer =
    "only this client is in the slice, not the container, which has an environment of its own. Put cuslice run into "
    "the "
    "container's command, with cuslice and its folder (/dev/shm/cuslice) mounted";
constexpr std::string_view kHost =
    "only this client is in the slice, not what it starts on the other host. Write cuslice run behind it: ssh HOST "
    "cuslice run ...";
constexpr std::string_view kSlurm =
    "only this client is in the slice, which is reserved on this host; Slurm starts the job itself. Write cuslice run "
    "into the job: srun cuslice run ...";
constexpr std::string_view kSudo =
    "drops LD_PRELOAD, so what it starts is in no slice. Write it in front: sudo cuslice run ...";
constexpr std::string_view kSu =
    "drops LD_PRELOAD, so what it starts is in no slice. Write cuslice run into its command: su USER -c 'cuslice run "
    "...'";

constexpr std::string_view kScheduler =
    "only this client is in the slice, which is reserved on this host; the scheduler starts the job itself. Write "
    "cuslice run into the job's command";
constexpr std::string_view kLater =
    "only this client is in the slice, which ends with it; the job runs later. Write cuslice run into the job: echo "
    "'cuslice run ...' | at ...";
constexpr std::string_view kManager =
    "only this client is in the slice; the service manager starts the program. Write cuslice run behind it: "
    "systemd-run ... cuslice run ...";
constexpr std::string_view kTmux =
    "a server that runs already starts the program itself, in no slice. Write cuslice run into its command: tmux new "
    "'cuslice run ...'";
constexpr std::string_view kRay =
    "only this client is in the slice; Ray's cluster starts the job. Write cuslice run behind it: ray job submit -- "
    "cuslice run ...";
constexpr std::string_view kCleanEnvironment =
    "leaves LD_PRELOAD out, so what it starts is in no slice. Write cuslice run behind it";

constexpr Client kClients[] = {
    {"docker", kContainer},
    {"podman", kContainer},
    {"nerdctl", kContainer},
    {"kubectl", kContainer},
    {"ssh", kHost},
    {"sbatch", kSlurm},
    {"srun", kSlurm},
    {"salloc", kSlurm},
    {"qsub", kScheduler},
    {"bsub", kScheduler},
    {"flux", kScheduler},
    {"condor_submit", kScheduler},
    {"at", kLater},
    {"batch", kLater},
    {"tmux", kTmux},
    {"sudo", kSudo},
    {"systemd-run", kManager},
    {"su", kSu},
};

// Programs that start the one behind their options, with this environment, and which of their options take a word.
struct Starter {
    std::string_view command;
    std::string_view with_word;
    unsigned own_words = 0;
};
constexpr Starter kStarters[] = {
    {"env", "uC"},  {"nohup", ""},     {"time", "fo"},       {"nice", "n"},
    {"setsid", ""}, {"stdbuf", "ioe"}, {"timeout", "sk", 1},
};

std::string_view last_component(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

bool has_any(std::span<const std::string> words, std::initializer_list<std::string_view> options) {
    return std::ranges::any_of(words, [&](const std::string& word) {
        return std::ranges::find(options, std::string_view(word)) != options.end();
    });
}

// The words from the program on that `words` are to start in the end: docker of "env A=1 nohup docker run".
std::span<const std::string> behind_starters(std::span<const std::string> words) {
    while (!words.empty()) {
        const auto* const starter = std::ranges::find(kStarters, last_component(words[0]), &Starter::command);
        if (starter == std::end(kStarters))
            break;
        size_t i = 1;
        while (i < words.size() && words[i].starts_with("-")) {
            const bool takes_word =
                words[i].size() == 2 && starter->with_word.find(words[i][1]) != std::string_view::npos;
            i += takes_word ? 2 : 1;
        }
        while (i < words.size() && starter->command == "env" && words[i].find('=') != std::string::npos)
            i++;
        words = words.subspan(std::min(i + starter->own_words, words.size()));
    }
    return words;
}

// A client for some of its words alone. Empty: it isn't one for these.
std::string_view why_with_words(std::string_view command, std::span<const std::string> words) {
    if (command == "ray")
        return words.size() > 2 && words[1] == "job" && words[2] == "submit" ? kRay : "";
    if (command == "apptainer" || command == "singularity")
        return has_any(words, {"--cleanenv", "-e", "--containall"}) ? kCleanEnvironment : "";
    return "";
}

constexpr std::string_view kLaunchers[] = {"torchrun", "accelerate", "deepspeed", "mpirun",
                                           "mpiexec",  "orterun",    "prterun",   "horovodrun"};
constexpr std::string_view kModules[] = {"torch.distributed.run", "torch.distributed.launch",
                                         "accelerate.commands.launch"};

// "torchrun", "python -m torch.distributed.run": what is to start ranks; empty: nothing is.
std::string rank_launcher(const std::string& command, const std::vector<std::string>& words) {
    if (std::ranges::find(kLaunchers, command) != std::end(kLaunchers))
        return command;
    if (!command.starts_with("python"))
        return {};
    for (size_t i = 1; i + 1 < words.size() && words[i].starts_with("-"); ++i)
        if (words[i] == "-m")
            return std::ranges::find(kModules, words[i + 1]) != std::end(kModules) ? "python -m " + words[i + 1]
                                                                                   : std::string();
    return {};
}

// True if the setting decides how much of which GPU a program gets.
bool decides(Key key) {
    return is_amount(key) || key == Key::split || key == Key::gpus || key == Key::group_limit || key == Key::fake;
}

}  // namespace

std::string explain_client(const std::vector<std::string>& words) {
    const std::span<const std::string> started = behind_starters(words);
    if (started.empty())
        return {};
    const std::string command(last_component(started[0]));
    const auto* const client = std::ranges::find(kClients, std::string_view(command), &Client::command);
    // A scope is this very process.
    const bool stays = command == "systemd-run" && has_any(started, {"--scope"});
    std::string_view why = why_with_words(command, started);
    if (client != std::end(kClients) && !stays)
        why = client->why;
    return why.empty() ? std::string() : command + ": " + std::string(why);
}

std::string explain_ranks(const std::string& command, const std::vector<std::string>& words,
                          const Environment& environment) {
    const std::string launcher = rank_launcher(command, words);
    if (launcher.empty() || environment.get("NCCL_MULTI_RANK_GPU_ENABLE").value_or("0") != "0")
        return {};
    return launcher +
           ": NCCL sees the physical GPU in every rank, and refuses several ranks on one. Use the backend gloo, or "
           "with NCCL 2.30 or newer set NCCL_MULTI_RANK_GPU_ENABLE=1";
}

std::string suggest_program(const std::string& name, int exit_code, const Environment& environment) {
    const auto is_there = [&](const std::string& one) { return find_program(one, environment).exit_code == 0; };
    const size_t space = name.find(' ');
    if (space != name.npos && is_there(name.substr(0, space)))
        return "; the quotes make one word of the program and its arguments: write them without quotes";
    if (name == "python" && is_there("python3"))
        return "; did you mean python3";
    if (exit_code != kNotStarted || name.find('/') == name.npos)
        return {};
    if (name.ends_with(".py"))
        return "; did you mean python3 " + name;
    return started_file(name) != name || ElfFile(name).is_elf() ? "; chmod +x makes it a program" : "";
}

std::string explain_misplaced(const Settings& settings, const Arguments& arguments) {
    const auto entries = settings.entries();
    // Fake GPUs limit nothing, but who writes --fake in front knows where options go.
    const bool decided = std::ranges::any_of(entries, [](const Entry& entry) {
        return decides(entry.key) && (entry.key != Key::fake || entry.rank.source == Source::flag);
    });
    if (arguments.dashes || decided)
        return {};
    const std::vector<std::string>& words = arguments.program;
    for (size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
        const std::string name = words[i].substr(0, words[i].find('='));
        const KeyTraits* const traits = name.starts_with("--") ? find_key(std::string_view(name).substr(2)) : nullptr;
        if (traits == nullptr || !decides(traits->key))
            continue;
        return name +
               ": goes to the program, which gets whole GPUs; if it was meant for cuslice, write it before the "
               "program: cuslice run " +
               name + " ... -- program args";
    }
    return {};
}

}  // namespace cuslice::cli
