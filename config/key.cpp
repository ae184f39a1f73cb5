#include "config/key.h"

#include "config/other_words.h"

namespace cuslice {
namespace {

// In the order of enum Key, which indexes it.
constexpr KeyTraits kKeys[] = {
    {Key::fraction, "fraction", "CUSLICE_FRACTION", true, true, true, false, "FRACTION", "the whole GPU",
     "share of the GPU's memory: 0.4, 40%, or for some GPUs 0=0.4,GPU-5f=25%"},
    {Key::limit, "limit", "CUSLICE_LIMIT", true, true, true, false, "SIZE", "the whole GPU",
     "memory on the GPU: 4GiB, or for some GPUs 0=4GiB,GPU-5f=2048MiB; 4GiB+context: without the driver's own"},
    {Key::headroom, "headroom", "CUSLICE_HEADROOM", true, true, false, false, "SIZE|auto", "auto",
     "part of the limit kept for the driver's own memory: 64MiB, or auto"},
    {Key::allocator, "allocator", "CUSLICE_ALLOCATOR", true, true, false, false, "MODE", "direct",
     "direct: count only; growth: cache, and grow as needed; prealloc: cache, and take the whole limit at start"},
    {Key::free_mode, "free", "CUSLICE_FREE", true, true, false, false, "WHEN", "strict",
     "when freed memory is reused: strict waits for the GPU in each free, deferred checks later"},
    {Key::idle_release, "idle-release", "CUSLICE_IDLE_RELEASE", true, true, false, false, "no|TIME", "no",
     "return cached memory to the driver when unused for this long: 500ms, 10s"},
    {Key::no_framework_env, "no-framework-env", "CUSLICE_NO_FRAMEWORK_ENV", false, true, false, true, "yes|no", "no",
     "don't set TensorFlow's and JAX's own variables for the allocator growth, limits and splits"},
    {Key::gpus, "gpus", "CUSLICE_GPUS", false, true, false, false, "LIST", "all that are visible",
     "the GPUs that the program sees, in this order: 3,2 or 0-2 or GPU-5f,0000:81:00.0; any: one with enough free "
     "memory; all; none"},
    {Key::split, "split", "CUSLICE_SPLIT", true, true, false, false, "PARTS", "none",
     "split a GPU into virtual GPUs: 4 (equal), 0=1GiB+rest, in an order 0=1GiB@1+2GiB@0, with a priority "
     "0=1GiB:-1+rest, with the identity of a number 0=rest#3"},
    {Key::oversubscribe, "oversubscribe", "CUSLICE_OVERSUBSCRIBE", false, true, false, true, "yes|no", "no",
     "let the virtual GPUs' sizes add up to more than their GPU; every limit still holds"},
    {Key::group, "group", "CUSLICE_GROUP", false, true, false, false, "NAME", "none",
     "share --group-limit with all of this user's programs in the same group; @container: with those of the same "
     "container"},
    {Key::group_limit, "group-limit", "CUSLICE_GROUP_LIMIT", true, true, false, false, "SIZE", "none",
     "memory on the GPU for the whole group: 16GiB, or for some GPUs 0=16GiB,1=8GiB"},
    {Key::per_process, "per-process", "CUSLICE_PER_PROCESS", false, true, false, true, "yes|no", "no",
     "give each process that the program starts a limit of its own; reserve nothing"},
    {Key::admission, "admission", "CUSLICE_ADMISSION", false, true, false, false, "WHEN", "launch",
     "when a limit is reserved, or refused: at the launch, or at the first-context on each GPU, also without a job"},
    {Key::wait, "wait", "CUSLICE_WAIT", false, true, false, true, "TIME", "no",
     "if others hold the memory, queue until it is free: forever, or for 90s, 10m, 2h"},
    {Key::dir, "dir", "CUSLICE_DIR", false, true, false, false, "FOLDER", "/dev/shm/cuslice",
     "folder of the ledgers in which processes record their memory; the same for all that share a GPU"},
    {Key::log, "log", "CUSLICE_LOG", false, true, false, false, "LEVEL[:FILE]", "warn",
     "messages to log: warn, info or debug; to stderr or appended to FILE"},
    {Key::summary, "summary", "CUSLICE_SUMMARY", false, true, false, true, "yes|no", "no",
     "when a process ends, say how much of each limit it used and what held most"},
    {Key::record, "record", "CUSLICE_RECORD", false, true, false, false, "FILE", "none",
     "log every allocation and free to a new file in RMM's format; %p in its name is the pid"},
    {Key::config, "config", "CUSLICE_CONFIG", false, false, false, false, "FILE", "none", "a file with settings"},
    {Key::driver, "driver", "CUSLICE_DRIVER", false, true, false, false, "FILE", "found as the loader would",
     "the real driver's libcuda.so.1"},
    {Key::fake, "fake", "CUSLICE_FAKE", false, true, false, false, "GPUS", "none",
     "run on fake GPUs: 4xh200, 2xa100-40g,1xt4, or a TOML file"},
    {Key::fake_kernels, "fake-kernels", "CUSLICE_FAKE_KERNELS", false, true, false, false, "skip|error", "skip",
     "on a fake GPU, check kernels and skip them, or refuse to launch them"},
    {Key::fake_machine, "fake-machine", "CUSLICE_FAKE_MACHINE", false, true, false, false, "new|NAME",
     "one for each user",
     "fake GPUs that nobody else sees: new, until the program ends; or shared by all who give the same name"},
};

// The rest of the design's words: who reads about them must not believe that they hold already.
constexpr LaterKey kLaterKeys[] = {
    {"reserve", true},
};

// Read by others than the settings: the library's hand-over, and the fake GPU's own switches for tests.
constexpr std::string_view kInternal[] = {
    "CUSLICE_SETTINGS",     kJobVariable,          kChosenVariable,    kFakeFolderVariable,  "CUSLICE_FAKE_ADDRESSES",
    "CUSLICE_FAKE_HOST",    "CUSLICE_FAKE_INJECT", "CUSLICE_FAKE_LOG", "CUSLICE_FAKE_NEWER", "CUSLICE_FAKE_RUNTIME",
    "CUSLICE_FAKE_STREAMS", "CUSLICE_REPORT",      kFrameworkRecord,
};

constexpr std::string_view kVariableStart = "CUSLICE_";

using Name = FixedText<64>;

// The same word as an option, a variable or a key, so that a suggestion can be copied from the line.
Name spell(Spelling spelling, std::string_view word) {
    Name name;
    switch (spelling) {
        case Spelling::option:
            return name.append("--").append(word);
        case Spelling::key:
            return name.append(word);
        case Spelling::variable:
            name.append(kVariableStart);
            for (const char letter : word) {
                name.append(letter == '-'                    ? '_'
                            : letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A')
                                                             : letter);
            }
            return name;
    }
    return name;
}

}  // namespace

std::span<const KeyTraits> all_keys() { return kKeys; }
std::span<const LaterKey> later_keys() { return kLaterKeys; }
std::span<const std::string_view> internal_variables() { return kInternal; }

const KeyTraits& traits_of(Key key) { return kKeys[static_cast<std::size_t>(key)]; }

const KeyTraits* find_key(std::string_view name) {
    for (const KeyTraits& traits : kKeys) {
        if (traits.name == name) return &traits;
    }
    return nullptr;
}

const KeyTraits* find_variable(std::string_view variable) {
    for (const KeyTraits& traits : kKeys) {
        if (traits.variable == variable) return &traits;
    }
    return nullptr;
}

const LaterKey* find_later_key(std::string_view name) {
    for (const LaterKey& later : kLaterKeys) {
        if (later.name == name) return &later;
    }
    return nullptr;
}

// Spelled from the words, so that no list of variables can differ from the list of words.
const LaterKey* find_later_variable(std::string_view variable) {
    for (const LaterKey& later : kLaterKeys) {
        if (spell(Spelling::variable, later.name).view() == variable) return &later;
    }
    return nullptr;
}

void explain_later(const LaterKey& later, Reason& why) { why.assign(later.name).append(" is not in this version yet"); }

bool is_internal_variable(std::string_view variable) {
    for (const std::string_view internal : kInternal) {
        if (internal == variable) return true;
    }
    return false;
}

void explain_unknown(Spelling spelling, std::string_view name, Reason& why) {
    constexpr std::string_view kWhat[] = {"option", "variable", "key"};
    why.assign("no such ").append(kWhat[static_cast<std::size_t>(spelling)]);
    // One letter wrong in a short word, more in a long one: further away it would be guessing.
    Name nearest;
    const std::size_t word = name.size() - (spelling == Spelling::option ? 2
                                            : spelling == Spelling::key  ? 0
                                                                         : kVariableStart.size());
    unsigned least = static_cast<unsigned>(word) / 4 + 1;
    for (const KeyTraits& traits : kKeys) {
        if (spelling == Spelling::key && !traits.in_file) continue;
        const Name candidate = spell(spelling, traits.name);
        const unsigned distance = edit_distance(name, candidate.view());
        if (distance > least || (distance == least && !nearest.empty())) continue;
        least = distance;
        nearest = candidate;
    }
    const std::string_view other = nearest.empty() ? setting_called(name) : std::string_view();
    if (!other.empty()) nearest = spell(spelling, other);
    if (nearest.empty())
        why.append("; cuslice help options lists all");
    else
        why.append("; did you mean ").append(nearest.view());
}

}  // namespace cuslice
