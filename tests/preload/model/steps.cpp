// SPDX-License-Identifier: Apache-2.0
// The steps that one program takes by itself.
#include <algorithm>
#include <iterator>
#include <vector>

#include "tests/preload/model/round.h"

namespace cuslice::tests::model {
namespace {

const std::vector<int> kMayBeRefused{kSuccess, kOutOfMemory};  // other programs may hold the rest

std::string text(uint64_t number) { return std::to_string(number); }

bool is_pooled(const std::string& kind) { return kind == "async" || kind == "ptsz" || kind.rfind("pool=", 0) == 0; }

}  // namespace

void Round::step() {
    struct Choice {
        unsigned weight;
        const char* name;
        void (Round::*take)(Member&);
    };
    // Steps of one program, by weight; kEvents, below, is the weight of events that concern all programs.
    static constexpr Choice kChoices[] = {
        {30, "allocate", &Round::allocate},
        {26, "free", &Round::free_one},
        {5, "context", &Round::context},
        {2, "primary context", &Round::primary},
        {3, "second device", &Round::second},
        {6, "module", &Round::module_of},
        {6, "array", &Round::array},
        {6, "pool", &Round::pool},
        {6, "physical memory", &Round::piece},
        {6, "graph", &Round::graph},
        {5, "capture", &Round::capture},
        {6, "IPC", &Round::share},
        {5, "question", &Round::ask_around},
        {2, "threads", &Round::threads},
        {1, "fork or exec", &Round::fork_and_exec},
        {1, "close all", &Round::close_all},
    };
    static constexpr unsigned kEvents = 10;
    unsigned sum = kEvents;
    for (const Choice& choice : kChoices)
        sum += choice.weight;
    auto drawn = static_cast<unsigned>(below(sum));
    if (drawn < kEvents)
        return event(drawn);
    drawn -= kEvents;
    const Choice* choice = kChoices;
    for (; drawn >= choice->weight; ++choice)
        drawn -= choice->weight;
    Member* member = somebody(false);
    if (!member)
        return event(0);
    totals_.actions[choice->name]++;
    if (!member->ready)
        return retain(*member);
    (this->*choice->take)(*member);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

void Round::allocate(Member& member) {
    constexpr const char* kKinds[] = {"plain", "plain", "plain", "plain", "managed", "pitch", "old", "async", "ptsz"};
    std::string kind = kKinds[below(std::size(kKinds))];
    if (chance(5))
        for (const auto& [name, thing] : member.things)
            if (thing.kind == "pool")
                kind = "pool=" + name;
    if (kind.rfind("pool=", 0) == 0 && member.current == "1")
        kind = "plain";
    const std::string name = fresh("b");
    const uint64_t bytes = kind == "pitch" ? below(100000) + 1 : kind == "old" ? below(100000) + 1 : size();
    if (expect(member, "alloc " + name + " " + text(bytes) + " " + kind, kMayBeRefused) == kSuccess)
        // A pool's block lives as long as the device is in use, which the second one is for as long as it has its
        // context.
        member.things[name] = {kind, is_pooled(kind) && member.current != "1" ? "" : member.current, bytes};
}

void Round::free_one(Member& member) {
    if (member.things.empty())
        return allocate(member);
    auto chosen = member.things.begin();
    std::advance(chosen, static_cast<long>(below(member.things.size())));
    free_thing(member, std::string(chosen->first));
}

void Round::free_thing(Member& member, const std::string& name) {
    const Thing thing = member.things.at(name);
    const auto how = [&]() -> std::string {
        if (thing.kind == "array")
            return "unarray ";
        if (thing.kind == "mipmap")
            return "unmipmap ";
        if (thing.kind == "module" || thing.kind == "kernels")
            return "unload ";
        if (thing.kind == "piece")
            return "unpiece ";
        if (thing.kind == "given")
            return "unexport ";
        if (thing.kind == "mapping")
            return "unmap ";
        if (thing.kind == "ipc")
            return "ipcclose ";
        if (thing.kind == "graph")
            return "ungraph ";
        if (thing.kind == "pool")
            return "unpool ";
        if (thing.kind == "old")
            return "freeold ";
        return is_pooled(thing.kind) && chance(2) ? "freeasync " : "free ";
    }();
    if (thing.kind == "pool")
        for (const auto& [other, one] : member.things)
            if (one.kind == "pool=" + name)
                return;  // not before its blocks
    if (thing.kind == "graph" && thing.out)
        expect(member, "graphfree " + name, {kSuccess});
    // A mapping has its piece's name in the program.
    const std::string known = thing.kind == "mapping" ? name.substr(0, name.find('.')) : name;
    // Work on what a pool gave is ordered by the stream of the context that is current.
    if (thing.kind == "ipc" && thing.context != member.current)
        make_current(member, thing.context);
    expect(member, how + known, {kSuccess});
    member.things.erase(name);
}

void Round::drop_kinds(Member& member, bool (*wanted)(const std::string& kind)) {
    // Pools after their blocks.
    for (const bool pools : {false, true})
        for (auto next = member.things.begin(); next != member.things.end();) {
            const std::string name = next->first;
            ++next;
            const std::string kind = member.things.at(name).kind;
            if ((kind == "pool") == pools && wanted(kind))
                free_thing(member, name);
        }
}

// ---- contexts -------------------------------------------------------------------------------------------------------

void Round::make_current(Member& member, const std::string& context) {
    expect(member, "current " + context, {kSuccess});
    member.current = context;
}

void Round::context(Member& member) {
    auto& contexts = member.contexts;
    const size_t own = static_cast<size_t>(
        std::count_if(contexts.begin(), contexts.end(), [](const std::string& name) { return name != "1"; }));
    if (chance(3))
        return make_current(member, contexts.empty() || chance(2) ? "0" : contexts[below(contexts.size())]);
    if (own < 2 && chance(2)) {
        const std::string name = fresh("c");
        if (expect(member, "create " + name + " 0", kMayBeRefused) != kSuccess) {
            member.context_refused = true;
            return;
        }
        member.contexts.push_back(name);
        member.current = name;
    } else if (own > 0) {
        for (const std::string& name : Words(contexts))
            if (name != "1")
                return end_context(member, name);
    }
}

// Everything in a context ends with it, except memory of pools.
void Round::end_context(Member& member, const std::string& context) {
    if (member.current == context && chance(2))
        make_current(member, "0");
    expect(member, context == "1" ? "release 1" : "destroy " + context, {kSuccess});
    forget_context(member, context);
    std::erase(member.contexts, context);
    make_current(member, "0");
}

void Round::forget_context(Member& member, const std::string& context) {
    std::erase_if(member.things, [&](const auto& one) { return one.second.context == context; });
}

void Round::primary(Member& member) {
    make_current(member, "0");
    drop_kinds(member, [](const std::string& kind) {
        return is_pooled(kind) || kind == "pool" || kind == "graph" || kind == "ipc" || kind == "piece" ||
               kind == "mapping";
    });
    expect(member, "release 0", {kSuccess});
    forget_context(member, "0");
    member.ready = false;
    retain(member);
}

// The second device's primary context.
void Round::second(Member& member) {
    for (const std::string& name : member.contexts)
        if (name == "1")
            return end_context(member, "1");
    if (expect(member, "retain 1", kMayBeRefused) != kSuccess) {
        member.context_refused = true;
        return make_current(member, "0");
    }
    member.contexts.push_back("1");
    member.current = "1";
}

// ---- what is in a context -------------------------------------------------------------------------------------------

// A program has at most one module whose code the driver loads at its first use.
void Round::module_of(Member& member) {
    for (const auto& [name, thing] : member.things)
        if (thing.kind == "kernels" || (thing.kind == "module" && chance(3)))
            return free_thing(member, std::string(name));
    if (chance(3)) {
        const std::string name = fresh("k");
        if (expect(member, "kernels " + name + " 1", kMayBeRefused) == kSuccess)
            member.things[name] = {"kernels", member.current};
        return;
    }
    if (chance(6)) {
        expect(member, "heap " + text(size() / 8), kMayBeRefused);
        return;
    }
    const std::string name = fresh("m");
    if (expect(member, "module " + name + " " + text(size() / 2), kMayBeRefused) == kSuccess)
        member.things[name] = {"module", member.current};
}

void Round::array(Member& member) {
    const std::string name = fresh("a"), width = text(below(500) + 1), height = text(below(500) + 1);
    if (chance(2)) {
        if (expect(member, "array " + name + " " + width + " " + height + " " + text(below(8) + 1), kMayBeRefused) ==
            kSuccess)
            member.things[name] = {"array", member.current};
    } else if (expect(member, "mipmap " + name + " " + width + " " + height + " 0 1", kMayBeRefused) == kSuccess) {
        member.things[name] = {"mipmap", member.current};
    }
}

void Round::pool(Member& member) {
    std::string name;
    for (const auto& [one, thing] : member.things)
        if (thing.kind == "pool" && (name.empty() || chance(2)))
            name = one;
    if (name.empty() || chance(4)) {
        name = chance(2) ? "default" : fresh("p");
        expect(member, "pool " + name + " 0", {kSuccess});
        if (name != "default")
            member.things[name] = {"pool", ""};
    }
    if (chance(2))
        expect(member, "keep " + name + " " + text(chance(2) ? 0 : 256 * kMiB), {kSuccess});
    if (chance(3))
        expect(member, "trim " + name + " " + text(chance(2) ? 0 : 16 * kMiB), {kSuccess});
    if (chance(3))
        expect(member, "sync", {kSuccess});
}

// Each looks at what nobody is listed with, and takes another one's memory that is gone for its own
// (docs/boundaries.md): so one process of a round gives memory away, where all see each other.
bool Round::may_give_away(const Member& member) {
    if (is_blurred() || combination_.seen == Combination::Seen::pid_namespace ||
        combination_.seen == Combination::Seen::user_namespace)
        return false;
    if (giver_ == Identity{})
        giver_ = identity_of(member);
    return giver_ == identity_of(member);
}

// Memory that a descriptor alone keeps, and all that can be had beside it.
void Round::give_away(Member& member) {
    const std::string name = fresh("v");
    const uint64_t bytes = (below(100) + 1) * 2 * kMiB;
    if (expect(member, "piece " + name + " " + text(bytes) + " export", kMayBeRefused) != kSuccess)
        return;
    expect(member, "export " + name, {kSuccess});
    expect(member, "unpiece " + name, {kSuccess});
    member.things[name] = {"given", "", bytes};
    std::string said;
    if (member.current == "1" || expect(member, "info", {kSuccess}, &said) != kSuccess)
        return;
    const std::string most = fresh("b");
    if (expect(member, "alloc " + most + " " + split_words(said).at(1), {kSuccess, kInvalidValue, kOutOfMemory}) ==
        kSuccess)
        expect(member, "free " + most, {kSuccess});
}

void Round::piece(Member& member) {
    if (chance(3) && may_give_away(member))
        return give_away(member);
    for (const auto& [name, thing] : member.things)
        if (thing.kind == "piece" && !member.things.count(name + ".mapped") && chance(2)) {
            if (expect(member, "map " + name + " " + text(thing.bytes), kMayBeRefused) == kSuccess)
                member.things[name + ".mapped"] = {"mapping", "", thing.bytes};
            return;
        }
    const std::string name = fresh("v");
    const uint64_t bytes = (below(30) + 1) * 2 * kMiB;
    const std::string kind = chance(3) ? " export" : "";
    if (expect(member, "piece " + name + " " + text(bytes) + kind, kMayBeRefused) == kSuccess)
        member.things[name] = {"piece", "", bytes, !kind.empty()};
}

void Round::graph(Member& member) {
    if (member.current == "1")
        return make_current(member, "0");
    for (auto& [name, thing] : member.things) {
        if (thing.kind != "graph" || chance(3))
            continue;
        if (thing.out) {
            expect(member, "graphfree " + name, {kSuccess});
            thing.out = false;
        } else if (expect(member, (chance(4) ? "upload " : "launch ") + name, kMayBeRefused) == kSuccess) {
            // Memory that a graph's launch leaves behind is the program's; an upload leaves nothing.
            thing.out = thing.bytes != 0 && story_.back().find("launch") != std::string::npos;
        }
        if (chance(4))
            expect(member, "graphtrim", {kSuccess});
        return;
    }
    const std::string name = fresh("g"), bytes = text(size() / 4 + 1);
    const bool leaves = chance(2), captured = chance(2);
    const std::string end = leaves ? " leave" : " free";
    const std::string line = captured ? "capture " + name + " " + bytes + end
                                      : "graph " + name + " " + bytes + " " + text(below(4) + 1) + end;
    if (expect(member, line, kMayBeRefused) == kSuccess)
        member.things[name] = {"graph", "", leaves ? 1u : 0u};
}

// A driver forbids some calls during a capture, and whoever is refused one has lost it; a cache has no need of them.
void Round::capture(Member& member) {
    constexpr const char* kModes[] = {"global", "local", "relaxed"};
    const std::string stream = fresh("s");
    expect(member, "stream " + stream, {kSuccess});
    expect(member, "begin " + stream + " " + kModes[below(3)], {kSuccess});
    bool lost = false;
    for (uint64_t i = below(4); i > 0; --i) {
        if (chance(2)) {
            const std::string name = fresh("b");
            const int code = expect(member, "alloc " + name + " " + text(size() / 4 + 1),
                                    {kSuccess, kOutOfMemory, kStreamCaptureUnsupported, kStreamCaptureInvalidated});
            if (code == kSuccess)
                member.things[name] = {"plain", member.current};
            lost = lost || code >= kStreamCaptureUnsupported;
            continue;
        }
        for (const auto& [name, thing] : member.things) {
            if (thing.kind != "plain")
                continue;
            const std::string freed = name;
            const int code =
                expect(member, "free " + freed, {kSuccess, kStreamCaptureUnsupported, kStreamCaptureInvalidated});
            if (code == kSuccess)
                member.things.erase(freed);
            lost = lost || code >= kStreamCaptureUnsupported;
            break;
        }
    }
    expect(member, "end " + stream, lost ? Codes{kStreamCaptureInvalidated} : Codes{kSuccess});
    expect(member, "unstream " + stream, {kSuccess});
}

// ---- with others ----------------------------------------------------------------------------------------------------

void Round::share(Member& member) {
    Member* const other = neighbour_of(member);
    if (!other || other->current == "1" || is_blurred())
        return ask_around(member);
    for (auto& [name, thing] : member.things) {
        if (thing.out || thing.context == "1" || (thing.kind != "plain" && thing.kind != "piece") || chance(3))
            continue;
        if (thing.kind == "piece")
            continue;  // made without a handle that others can open
        std::string said;
        expect(member, "ipcget " + name, {kSuccess}, &said);
        thing.out = true;
        const std::string opened = fresh("i");
        // Between containers the driver may not find what is meant.
        const bool apart = combination_.seen == Combination::Seen::pid_namespace ||
                           combination_.seen == Combination::Seen::user_namespace;
        if (expect(*other, "ipcopen " + opened + " " + split_words(said).at(1),
                   apart ? Codes{kSuccess, kInvalidValue, kOutOfMemory, kInvalidHandle} : kMayBeRefused) == kSuccess)
            other->things[opened] = {"ipc", other->current};
        return;
    }
    for (auto& [name, thing] : member.things) {
        // A descriptor is found by its number in /proc, which only programs of one container have in common.
        if (thing.kind != "piece" || !thing.out || !may_give_away(member))
            continue;
        std::string said;
        if (expect(member, "export " + name, {kSuccess}, &said) != kSuccess)
            return;
        const std::string opened = fresh("v");
        if (expect(*other, "import " + opened + " " + split_words(said).at(1), kMayBeRefused) == kSuccess)
            other->things[opened] = {"piece", "", thing.bytes};
        expect(member, "unexport " + name, {kSuccess});
        return;
    }
}

void Round::ask_around(Member& member) {
    std::string said;
    expect(member, "info", {kSuccess}, &said);
    const Words words = split_words(said);
    const uint64_t free = std::stoull(words.at(1)), total = std::stoull(words.at(2));
    if (free > total || total > limits_of(member.user).process)
        fail("program " + text(member.number) + " is told " + said);
    expect(member, "sync", {kSuccess});
    expect(member, "alloc none " + text(uint64_t{1} << 40), {kOutOfMemory});
    looked(member);
    expect(member, "freeat 4096", {kInvalidValue});
}

void Round::drop_all(Member& member) {
    drop_kinds(member, [](const std::string&) { return true; });
    for (const std::string& name : Words(member.contexts))
        end_context(member, name);
    make_current(member, "0");
}

}  // namespace cuslice::tests::model
