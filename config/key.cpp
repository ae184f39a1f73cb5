// SPDX-License-Identifier: Apache-2.0
#include "config/key.h"

#include "config/other_words.h"

namespace cuslice {
namespace {

// In the order of enum Key, which indexes it. A row is the whole setting: what it does is where its Key is looked up.
constexpr KeyTraits kKeys[] = {
    {.key = Key::fraction,
     .name = "fraction",
     .type = ValueType::fraction,
     .heading = Heading::memory,
     .takers = kSet | kContainers,
     .per_gpu = true,
     .may_be_ceiling = true,
     .placeholder = "FRACTION",
     .example = "0.4",
     .default_value = "the whole GPU",
     .help = "share of the GPU's memory: 0.4, 40%, or for some GPUs 0=0.4,GPU-5f=25%"},
    {.key = Key::limit,
     .name = "limit",
     .type = ValueType::limit,
     .heading = Heading::memory,
     .takers = kSet | kContainers,
     .per_gpu = true,
     .may_be_ceiling = true,
     .takes_context = true,
     .placeholder = "SIZE",
     .example = "\"4GiB\"",
     .default_value = "the whole GPU",
     .help = "memory on the GPU: 4GiB, or for some GPUs 0=4GiB,GPU-5f=2048MiB; 4GiB+context: without the driver's own"},
    {.key = Key::headroom,
     .name = "headroom",
     .type = ValueType::size,
     .heading = Heading::memory,
     .takers = kContainers,
     .per_gpu = true,
     .placeholder = "SIZE|auto",
     .words = "auto",
     .example = "\"64MiB\"",
     .default_value = "auto",
     .help = "part of the limit kept for the driver's own memory: 64MiB, or auto"},
    {.key = Key::allocator,
     .name = "allocator",
     .type = ValueType::choice,
     .heading = Heading::memory,
     .takers = kContainers,
     .per_gpu = true,
     .placeholder = "MODE",
     .words = "direct growth prealloc",  // in the order of AllocatorMode
     .example = "\"growth\"",
     .default_value = "direct",
     .help =
         "direct: count only; growth: cache, and grow as needed; prealloc: cache, and take the whole limit at start"},
    {.key = Key::free_mode,
     .name = "free",
     .type = ValueType::choice,
     .heading = Heading::memory,
     .takers = kContainers,
     .per_gpu = true,
     .placeholder = "WHEN",
     .words = "strict deferred",  // in the order of FreeMode
     .example = "\"deferred\"",
     .default_value = "strict",
     .help = "when freed memory is reused: strict waits for the GPU in each free, deferred checks later"},
    {.key = Key::idle_release,
     .name = "idle-release",
     .type = ValueType::duration,
     .heading = Heading::memory,
     .takers = kContainers,
     .per_gpu = true,
     .placeholder = "no|TIME",
     .words = "no",
     .needed = "no, or a time: 500ms, 10s, 5m",
     .example = "\"10s\"",
     .default_value = "no",
     .help = "return cached memory to the driver when unused for this long: 500ms, 10s"},
    {.key = Key::no_framework_env,
     .name = "no-framework-env",
     .type = ValueType::switch_,
     .heading = Heading::memory,
     .stands_alone = true,
     .placeholder = "yes|no",
     .words = "yes no",
     .example = "true",
     .default_value = "no",
     .help = "don't set TensorFlow's and JAX's own variables for the allocator growth, limits and splits"},
    {.key = Key::gpus,
     .name = "gpus",
     .type = ValueType::gpus,
     .heading = Heading::gpus,
     .placeholder = "LIST",
     .words = "any all none",
     .example = "\"3,2\"",
     .default_value = "all that are visible",
     .help = "the GPUs that the program sees, in this order: 3,2 or 0-2 or GPU-5f,0000:81:00.0; any: one with enough "
             "free memory; all; none"},
    {.key = Key::split,
     .name = "split",
     .type = ValueType::split,
     .heading = Heading::gpus,
     .takers = kContainers,
     .per_gpu = true,
     .takes_context = true,
     .placeholder = "PARTS",
     .example = "[\"1GiB\", \"rest\"]",
     .default_value = "none",
     .help = "split a GPU into virtual GPUs: 4 (equal), 0=1GiB+rest, in an order 0=1GiB@1+2GiB@0, with a priority "
             "0=1GiB:-1+rest, with the identity of a number 0=rest#3"},
    {.key = Key::oversubscribe,
     .name = "oversubscribe",
     .type = ValueType::switch_,
     .heading = Heading::gpus,
     .takers = kContainers,
     .stands_alone = true,
     .placeholder = "yes|no",
     .words = "yes no",
     .example = "true",
     .default_value = "no",
     .help = "let the virtual GPUs' sizes add up to more than their GPU; every limit still holds"},
    {.key = Key::redirect_runtime,
     .name = "redirect-runtime",
     .type = ValueType::choice,
     .heading = Heading::gpus,
     .in_file = false,
     .placeholder = "no|program|all",
     .words = "no program all",
     .example = "\"\"",
     .default_value = "no",
     .help = "a program with NVIDIA's static runtime calls the shared one, and so sees virtual and fake GPUs; all: "
             "libraries, too"},
    {.key = Key::group,
     .name = "group",
     .type = ValueType::group,
     .heading = Heading::sharing,
     .takers = kSet | kContainers,
     .completes = Completes::groups,
     .placeholder = "NAME",
     .example = "\"lab\"",
     .default_value = "none",
     .help = "share --group-limit with all of this user's programs in the same group; @container: with those of the "
             "same container"},
    {.key = Key::group_limit,
     .name = "group-limit",
     .type = ValueType::limit,
     .heading = Heading::sharing,
     .takers = kContainers,
     .per_gpu = true,
     .placeholder = "SIZE",
     .example = "\"16GiB\"",
     .default_value = "none",
     .help = "memory on the GPU for the whole group: 16GiB, or for some GPUs 0=16GiB,1=8GiB"},
    {.key = Key::per_process,
     .name = "per-process",
     .type = ValueType::switch_,
     .heading = Heading::sharing,
     .takers = kContainers,
     .stands_alone = true,
     .placeholder = "yes|no",
     .words = "yes no",
     .example = "true",
     .default_value = "no",
     .help = "give each process that the program starts a limit of its own; reserve nothing"},
    {.key = Key::admission,
     .name = "admission",
     .type = ValueType::choice,
     .heading = Heading::sharing,
     .takers = kContainers,
     .placeholder = "WHEN",
     .words = "launch first-context",  // in the order of Admission
     .example = "\"first-context\"",
     .default_value = "launch",
     .help = "when a limit is reserved, or refused: at the launch, or at the first-context on each GPU, also without a "
             "job"},
    {.key = Key::wait,
     .name = "wait",
     .type = ValueType::switch_or_duration,
     .heading = Heading::sharing,
     .stands_alone = true,
     .placeholder = "TIME",
     .words = "yes no",
     .needed = "yes, no, or the longest time to wait: 500ms, 90s, 10m, 2h",
     .example = "\"10m\"",
     .default_value = "no",
     .help = "if others hold the memory, queue until it is free: forever, or for 90s, 10m, 2h"},
    {.key = Key::dir,
     .name = "dir",
     .type = ValueType::absolute_folder,
     .heading = Heading::sharing,
     .takers = kLedgers | kContainers,
     .completes = Completes::folders,
     .placeholder = "FOLDER",
     .example = "\"/dev/shm/cuslice\"",
     .default_value = "/dev/shm/cuslice",
     .help = "folder of the ledgers in which processes record their memory; the same for all that share a GPU"},
    {.key = Key::share,
     .name = "share",
     .type = ValueType::percent,
     .heading = Heading::time,
     .takers = kSet | kContainers,
     .per_gpu = true,
     .placeholder = "PERCENT",
     .example = "\"30%\"",
     .default_value = "none",
     .help = "part of the GPU's time among those that have one and want it: 30%, or for some GPUs 0=30%,1=70%; not "
             "measured on a GPU"},
    {.key = Key::share_cap,
     .name = "share-cap",
     .type = ValueType::percent,
     .heading = Heading::time,
     .takers = kSet | kContainers,
     .per_gpu = true,
     .placeholder = "PERCENT",
     .example = "\"50%\"",
     .default_value = "none",
     .help = "never more than this part of the GPU's time, also where nobody else wants it"},
    {.key = Key::share_quantum,
     .name = "share-quantum",
     .type = ValueType::duration,
     .heading = Heading::time,
     .takers = kContainers,
     .placeholder = "TIME",
     .least = 5,
     .most = 500,
     .needed = "a time from 5ms to 500ms, as 20ms",
     .example = "\"20ms\"",
     .default_value = "50ms",
     .help = "mean length of a turn on the GPU, from 5ms to 500ms; the first program of the user's sets it"},
    {.key = Key::log,
     .name = "log",
     .type = ValueType::log,
     .heading = Heading::messages,
     .takers = kContainers,
     .placeholder = "LEVEL[:FILE]",
     .words = "warn info debug",
     .example = "\"info\"",
     .default_value = "warn",
     .help = "messages to log: warn, info or debug; to stderr or appended to FILE"},
    {.key = Key::summary,
     .name = "summary",
     .type = ValueType::switch_,
     .heading = Heading::messages,
     .takers = kContainers,
     .stands_alone = true,
     .placeholder = "yes|no",
     .words = "yes no",
     .example = "true",
     .default_value = "no",
     .help = "when a process ends, say how much of each limit it used and what held most"},
    {.key = Key::record,
     .name = "record",
     .type = ValueType::absolute_file,
     .heading = Heading::messages,
     .completes = Completes::files,
     .placeholder = "FILE",
     .example = "\"/tmp/%p.csv\"",
     .default_value = "none",
     .help = "log every allocation and free to a new file in RMM's format; %p in its name is the pid"},
    {.key = Key::record_stacks,
     .name = "record-stacks",
     .type = ValueType::switch_,
     .heading = Heading::messages,
     .stands_alone = true,
     .placeholder = "yes|no",
     .words = "yes no",
     .example = "true",
     .default_value = "no",
     .help = "record Python's stack with each allocation of 1 MiB or more, and each refusal"},
    {.key = Key::config,
     .name = "config",
     .type = ValueType::file,
     .heading = Heading::files,
     .takers = kLedgers,
     .in_file = false,
     .completes = Completes::files,
     .placeholder = "FILE",
     .example = "\"\"",
     .default_value = "none",
     .help = "a file with settings"},
    {.key = Key::driver,
     .name = "driver",
     .type = ValueType::file,
     .heading = Heading::files,
     .takers = kTop,
     .completes = Completes::files,
     .placeholder = "FILE",
     .example = "\"/lib/libcuda.so.1\"",
     .default_value = "found as the loader would",
     .help = "the real driver's libcuda.so.1"},
    {.key = Key::runtime,
     .name = "runtime",
     .type = ValueType::file,
     .heading = Heading::files,
     .in_file = false,
     .completes = Completes::files,
     .placeholder = "FILE",
     .example = "\"\"",
     .default_value = "found by its name",
     .help = "the libcudart.so.12 or .13 that --redirect-runtime leads to"},
    {.key = Key::fake,
     .name = "fake",
     .type = ValueType::fake_gpus,
     .heading = Heading::fake_gpus,
     .takers = kLedgers | kContainers,
     .completes = Completes::profiles,
     .placeholder = "GPUS",
     .example = "\"4xh200\"",
     .default_value = "none",
     .help = "run on fake GPUs: 4xh200, 2xa100-40g,1xt4, or a TOML file"},
    {.key = Key::fake_kernels,
     .name = "fake-kernels",
     .type = ValueType::choice,
     .heading = Heading::fake_gpus,
     .takers = kContainers,
     .placeholder = "skip|error",
     .words = "skip error",
     .example = "\"skip\"",
     .default_value = "skip",
     .help = "on a fake GPU, check kernels and skip them, or refuse to launch them"},
    {.key = Key::fake_machine,
     .name = "fake-machine",
     .type = ValueType::name,
     .heading = Heading::fake_gpus,
     .takers = kLedgers,
     .placeholder = "new|NAME",
     .words = "new",
     .example = "\"new\"",
     .default_value = "one for each user",
     .help = "fake GPUs that nobody else sees: new, until the program ends; or shared by all who give the same name"},
};

// The rest of the design's words: who reads about them must not believe that they hold already.
constexpr LaterKey kLaterKeys[] = {
    {"reserve", true},
};

// Read by others than the settings: the library's hand-over, and the fake GPU's own switches for tests.
constexpr std::string_view kInternal[] = {
    "CUSLICE_SETTINGS",       kJobVariable,         kChosenVariable,      kFakeFolderVariable,
    "CUSLICE_FAKE_ADDRESSES", "CUSLICE_FAKE_CLOCK", "CUSLICE_FAKE_COST",  "CUSLICE_FAKE_HOST",
    "CUSLICE_FAKE_INJECT",    "CUSLICE_FAKE_LOG",   "CUSLICE_FAKE_NEWER", "CUSLICE_FAKE_RUNTIME",
    "CUSLICE_FAKE_STREAMS",   "CUSLICE_REPORT",     kFrameworkRecord,
};

using Name = FixedText<64>;

// The same word as an option, a variable or a key, so that a suggestion can be copied from the line.
Name spell(Spelling spelling, std::string_view word) {
    Name name;
    switch (spelling) {
        case Spelling::option:
            return name.append("--", word);
        case Spelling::key:
            return name.append(word);
        case Spelling::variable:
            name.append(VariableName::kStart);
            for (const char letter : word)
                name.append(VariableName::upper(letter));
            return name;
    }
    return name;
}

}  // namespace

std::string_view name_of(ValueType type) {
    // In the order of ValueType.
    static constexpr RowText<18> kNames[] = {
        "fraction",           "limit",  "size",          "count",          "percent", "switch", "duration",
        "switch-or-duration", "choice", "name",          "group",          "gpus",    "split",  "log",
        "fake-gpus",          "file",   "absolute-file", "absolute-folder"};
    return kNames[static_cast<size_t>(type)];
}

std::span<const KeyTraits> all_keys() { return kKeys; }
std::span<const LaterKey> later_keys() { return kLaterKeys; }
std::span<const std::string_view> internal_variables() { return kInternal; }

const KeyTraits& traits_of(Key key) { return kKeys[static_cast<size_t>(key)]; }

const KeyTraits* find_key(std::string_view name) {
    for (const KeyTraits& traits : kKeys) {
        if (traits.name == name)
            return &traits;
    }
    return nullptr;
}

const KeyTraits* find_variable(std::string_view variable) {
    for (const KeyTraits& traits : kKeys) {
        if (traits.variable == variable)
            return &traits;
    }
    return nullptr;
}

const LaterKey* find_later_key(std::string_view name) {
    for (const LaterKey& later : kLaterKeys) {
        if (later.name == name)
            return &later;
    }
    return nullptr;
}

// Spelled from the words, so that no list of variables can differ from the list of words.
const LaterKey* find_later_variable(std::string_view variable) {
    for (const LaterKey& later : kLaterKeys) {
        if (spell(Spelling::variable, later.name).view() == variable)
            return &later;
    }
    return nullptr;
}

void explain_later(const LaterKey& later, Reason& why) { why.assign(later.name, " is not in this version yet"); }

bool is_internal_variable(std::string_view variable) {
    for (const std::string_view internal : kInternal) {
        if (internal == variable)
            return true;
    }
    return false;
}

void explain_unknown(Spelling spelling, std::string_view name, Reason& why) {
    constexpr std::string_view kWhat[] = {"option", "variable", "key"};
    why.assign("no such ", kWhat[static_cast<size_t>(spelling)]);
    // One letter wrong in a short word, more in a long one: further away it would be guessing.
    Name nearest;
    const size_t word = name.size() - (spelling == Spelling::option ? 2
                                       : spelling == Spelling::key  ? 0
                                                                    : VariableName::kStart.size());
    unsigned least = static_cast<unsigned>(word) / 4 + 1;
    for (const KeyTraits& traits : kKeys) {
        if (spelling == Spelling::key && !traits.in_file)
            continue;
        const Name candidate = spell(spelling, traits.name);
        const unsigned distance = edit_distance(name, candidate);
        if (distance > least || (distance == least && !nearest.empty()))
            continue;
        least = distance;
        nearest = candidate;
    }
    const std::string_view other = nearest.empty() ? setting_called(name) : std::string_view();
    if (!other.empty())
        nearest = spell(spelling, other);
    if (nearest.empty())
        why.append("; cuslice help options lists all");
    else
        why.append("; did you mean ", nearest);
}

}  // namespace cuslice
