#include "config/key.h"

namespace cuslice {
namespace {

// In the order of enum Key, which indexes it.
constexpr KeyTraits kKeys[] = {
    {Key::fraction, "fraction", "CUSLICE_FRACTION", true, true, true, false, "FRACTION", "the whole GPU",
     "share of the GPU's memory: 0.4, 40%, or for some GPUs 0=0.4,GPU-5f=25%"},
    {Key::limit, "limit", "CUSLICE_LIMIT", true, true, true, false, "SIZE", "the whole GPU",
     "memory on the GPU: 4GiB, or for some GPUs 0=4GiB,GPU-5f=2048MiB,0000:81:00.0=1GiB"},
    {Key::headroom, "headroom", "CUSLICE_HEADROOM", true, true, false, false, "SIZE|auto", "auto",
     "part of the slice kept for what the driver takes by itself: 64MiB, or auto"},
    {Key::allocator, "allocator", "CUSLICE_ALLOCATOR", true, true, false, false, "MODE", "direct",
     "direct: only count; growth: cache, and grow as needed; prealloc: cache, and take the slice at once"},
    {Key::free_mode, "free", "CUSLICE_FREE", true, true, false, false, "WHEN", "strict",
     "when cached memory may be used again: strict waits for the GPU in each free, deferred asks it later"},
    {Key::idle_release, "idle-release", "CUSLICE_IDLE_RELEASE", true, true, false, false, "no|TIME", "no",
     "give cached memory back that nobody has used for so long: 500ms, 10s"},
    {Key::no_framework_env, "no-framework-env", "CUSLICE_NO_FRAMEWORK_ENV", false, true, false, true, "yes|no", "no",
     "leave TensorFlow's and JAX's own variables alone where the allocator is growth"},
    {Key::gpus, "gpus", "CUSLICE_GPUS", false, true, false, false, "LIST|any", "all that are visible",
     "the GPUs that the program sees, in this order: 3,2 or GPU-5f,0000:81:00.0; or any one that has room"},
    {Key::split, "split", "CUSLICE_SPLIT", true, true, false, false, "PARTS", "none",
     "several virtual GPUs out of one: 4 equal ones, or 0=1GiB+2GiB, 0=1GiB+rest, in an order 0=1GiB@1+2GiB@0"},
    {Key::oversubscribe, "oversubscribe", "CUSLICE_OVERSUBSCRIBE", false, true, false, true, "yes|no", "no",
     "the virtual GPUs of a GPU may be more than it has together; each keeps its limit, and the GPU its own"},
    {Key::group, "group", "CUSLICE_GROUP", false, true, false, false, "NAME", "none",
     "share the limit of --group-limit with every program of this user that names the same group"},
    {Key::group_limit, "group-limit", "CUSLICE_GROUP_LIMIT", true, true, false, false, "SIZE", "none",
     "memory on the GPU for all of the group together: 16GiB, or for some GPUs 0=16GiB,1=8GiB"},
    {Key::per_process, "per-process", "CUSLICE_PER_PROCESS", false, true, false, true, "yes|no", "no",
     "each process that the program starts gets a slice of its own, and nothing is reserved"},
    {Key::wait, "wait", "CUSLICE_WAIT", false, true, false, true, "TIME", "no",
     "where the slice is taken by others, wait until it is free: for ever, or 90s, 10m, 2h"},
    {Key::dir, "dir", "CUSLICE_DIR", false, true, false, false, "FOLDER", "/dev/shm/cuslice",
     "where the host's programs write down what they hold; the same for all that share a GPU"},
    {Key::log, "log", "CUSLICE_LOG", false, true, false, false, "LEVEL[:FILE]", "warn",
     "what is said: warn, info or debug, on stderr or appended to FILE"},
    {Key::record, "record", "CUSLICE_RECORD", false, true, false, false, "FILE", "none",
     "write every allocation and free into a new file, as RMM's logging does; %p in its name is the pid"},
    {Key::config, "config", "CUSLICE_CONFIG", false, false, false, false, "FILE", "none", "a file of settings to read"},
    {Key::driver, "driver", "CUSLICE_DRIVER", false, true, false, false, "FILE", "found as the loader would",
     "the real driver's libcuda.so.1"},
    {Key::fake, "fake", "CUSLICE_FAKE", false, true, false, false, "GPUS", "none",
     "run on fake GPUs: 4xh200, 2xa100-40g,1xt4, or a TOML file"},
    {Key::fake_kernels, "fake-kernels", "CUSLICE_FAKE_KERNELS", false, true, false, false, "skip|error", "skip",
     "kernels on a fake GPU are checked and skipped, or refused"},
};

// The rest of the design's words: who reads about them must not believe that they hold already.
constexpr LaterKey kLaterKeys[] = {
    {"reserve", true},
};

// Read by others than the settings: the library's hand-over, and the fake GPU's own switches for tests.
constexpr std::string_view kInternal[] = {
    "CUSLICE_SETTINGS",       kJobVariable,           kChosenVariable,        kFakeFolderVariable,
    "CUSLICE_FAKE_ADDRESSES", "CUSLICE_FAKE_HOST",    "CUSLICE_FAKE_INJECT",  "CUSLICE_FAKE_LOG",
    "CUSLICE_FAKE_NEWER",     "CUSLICE_FAKE_RUNTIME", "CUSLICE_FAKE_STREAMS",
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
    if (!nearest.empty()) {
        why.append("; did you mean ").append(nearest.view());
        return;
    }
    why.append("; there are ");
    bool first = true;
    for (const KeyTraits& traits : kKeys) {
        if (spelling == Spelling::key && !traits.in_file) continue;
        if (!first) why.append(", ");
        first = false;
        why.append(spell(spelling, traits.name).view());
    }
}

}  // namespace cuslice
