// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/hostile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "policy/ledger/ledger.h"
#include "tests/preload/model/forge.h"
#include "tests/preload/model/mischief.h"
#include "tests/preload/model/place.h"

namespace cuslice::tests::model {
namespace {

std::string text(uint64_t number) { return std::to_string(number); }

unsigned some_victim(uint64_t random) { return kUsers[random % std::size(kUsers)]; }

}  // namespace

Hostile::Hostile(std::string folder, std::vector<std::string> uuids, uint64_t capacity, uint64_t seed)
    : folder_(std::move(folder)), uuids_(std::move(uuids)), capacity_(capacity), random_(seed) {}

std::string Hostile::step() {
    let_go_in_time();
    switch (below(16)) {
        case 0:
        case 1:
            return lock();
        case 2:
        case 3:
            return squat();
        case 4:
            return flood();
        case 5:
            return clear();
        case 6:
        case 7:
            return program();
        case 8:
            return move_program();
        case 9:
        case 10:
            return overwrite();
        case 11:
        case 12:
            return reshape();
        case 13:
            return inherit();
        default:
            return keep_at_it();
    }
}

void Hostile::let_go_in_time() {
    for (Held& held : held_)
        held.steps -= held.steps != 0;
    std::erase_if(held_, [](const Held& held) { return held.steps == 0; });
}

std::string Hostile::path_of(unsigned user, const std::string& uuid, unsigned number) const {
    char path[ledger::kPathBytes];
    return ledger::ledger_path(folder_.c_str(), user, uuid.c_str(), path, number) ? path : "";
}

// One that his programs have made: the text that he writes over it is among text that is true.
std::string Hostile::own_file() {
    const std::string uuid = some_gpu();
    const std::string there = whole_ledger(uuid);
    if (!there.empty())
        return there;
    const Hand hand(kHostileUser, [&](const Hand::Say& say) {
        for (unsigned i = 0; i < ledger::kMaxNames; i++)
            remove_something(path_of(kHostileUser, uuid, i));
        say("");
    });
    start(uuid, Puppet::At::anywhere);
    if (!programs_.empty())
        programs_.back()->go_on();
    const std::string made = whole_ledger(uuid);
    return made.empty() ? path_of(kHostileUser, uuid) : made;
}

// Under the first of the names that are his.
std::string Hostile::whole_ledger(const std::string& uuid) const {
    for (unsigned i = 0; i < ledger::kMaxNames; i++) {
        struct stat info {};
        const std::string path = path_of(kHostileUser, uuid, i);
        if (lstat(path.c_str(), &info) != 0 || info.st_uid != kHostileUser)
            continue;
        const bool whole = S_ISREG(info.st_mode) && (info.st_mode & 0600) == 0600 &&
                           info.st_size >= static_cast<off_t>(sizeof(ledger::File));
        return whole && info.st_blocks ? path : "";
    }
    return {};
}

void Hostile::start(const std::string& uuid, Puppet::At at) {
    constexpr size_t kMost = 3;
    if (!Puppet::possible())
        return;
    if (programs_.size() == kMost)
        programs_.pop_front();
    claims_ = true;
    const Puppet::Wish wish{kHostileUser, folder_, uuid, capacity_, "own" + text(below(3)), (64 + below(1500)) << 20};
    programs_.push_back(std::make_unique<Puppet>(wish, at, random_()));
}

// Others' room is theirs: with less than this, nothing more is written.
bool Hostile::has_room() const {
    constexpr uint64_t kLeft = 3 << 19;
    struct statvfs info {};
    return statvfs(folder_.c_str(), &info) == 0 && uint64_t{info.f_bavail} * info.f_bsize >= kLeft;
}

std::string Hostile::hold(bool claims, const std::function<void(const Hand::Say&)>& work) {
    constexpr size_t kMost = 4;
    if (held_.size() == kMost)
        held_.pop_front();
    held_.push_back({std::make_unique<Hand>(kHostileUser, work), static_cast<unsigned>(1 + below(8)), claims});
    claims_ = claims_ || claims;
    return held_.back().hand->said();
}

// ---- what he puts into the folder and takes away --------------------------------------------------------------------

std::string Hostile::lock() {
    const uint64_t seed = random_();
    return hold(false, [&](const Hand::Say& say) { say(lock_somewhere(folder_, seed)); });
}

// All names at once are rare: they keep a user's programs from starting.
std::string Hostile::squat() {
    const unsigned victim = some_victim(random_());
    const std::string uuid = some_gpu();
    const bool all = chance(10);
    const uint64_t seed = random_();
    const Hand hand(kHostileUser, [&](const Hand::Say& say) {
        std::mt19937_64 random(seed);
        unsigned made = 0;
        const uint64_t count = 1 + random() % 40;
        for (unsigned i = 0; i < (all ? ledger::kMaxNames : count); i++) {
            const unsigned number = all ? i : static_cast<unsigned>(random() % ledger::kMaxNames);
            made += put_something(path_of(victim, uuid, number), random());
        }
        // Files in the making, and names that pids will have soon.
        if (random() % 2)
            made += squat_made(path_of(victim, uuid), random());
        say(text(made) + " names of user " + text(victim) + "'s ledger are taken");
    });
    all_names_ = all_names_ || all;
    return hand.said();
}

std::string Hostile::flood() {
    const std::string uuid = some_gpu();
    const uint64_t seed = random_();
    const Hand hand(kHostileUser, [&](const Hand::Say& say) { say(flood_folder(folder_, uuid, seed)); });
    return hand.said();
}

std::string Hostile::clear() {
    const bool all = chance(2);
    const uint64_t seed = random_();
    const Hand hand(kHostileUser, [&](const Hand::Say& say) {
        std::mt19937_64 random(seed);
        unsigned removed = 0;
        for (const std::string& path : files_of(folder_, kHostileUser))
            if (all || random() % 2)
                removed += remove_something(path);
        say(text(removed) + " of his names are given up");
    });
    return hand.said();
}

std::string Hostile::overwrite() {
    if (!has_room())
        return {};
    const std::string path = own_file();
    const uint64_t seed = random_();
    claims_ = true;
    const Hand hand(kHostileUser, [&](const Hand::Say& say) {
        std::mt19937_64 random(seed);
        std::string said = "he writes over";
        for (uint64_t i = 1 + random() % 12; i > 0; --i)
            said += " " + forge_in(path, folder_, random) + ";";
        say(said);
    });
    return hand.said();
}

std::string Hostile::reshape() {
    if (!has_room())
        return {};
    const std::string path = own_file(), other = path_of(some_victim(random_()), some_gpu());
    const uint64_t seed = random_();
    claims_ = true;
    const Hand hand(kHostileUser, [&](const Hand::Say& say) { say(reshape_file(path, other, seed)); });
    return hand.said();
}

// Again and again, while the others go on.
std::string Hostile::keep_at_it() {
    if (!has_room())
        return {};
    const uint64_t kind = below(4), seed = random_();
    const std::string path = own_file(), other = path_of(some_victim(random_()), some_gpu());
    return hold(kind < 2, [&](const Hand::Say& say) {
        constexpr const char* kKinds[] = {"writes over his ledger", "reshapes his ledger", "locks others' files",
                                          "takes and leaves names"};
        say(std::string("from now on he ") + kKinds[kind] + " all the time");
        std::mt19937_64 random(seed);
        for (;; usleep(500)) {
            if (kind == 0)
                forge_in(path, folder_, random);
            if (kind == 1)
                reshape_file(path, other, random());
            if (kind == 2)
                lock_somewhere(folder_, random(), true);
            if (kind != 3)
                continue;
            const std::string name = other + (random() % 2 ? "" : "." + text(random() % 30000) + "-4026531836");
            put_something(name, random());
            remove_something(name);
        }
    });
}

// ---- his programs, and a victim's that has become his ---------------------------------------------------------------

std::string Hostile::program() {
    if (!Puppet::possible() || !has_room())
        return {};
    constexpr Puppet::At kAt[] = {Puppet::At::anywhere, Puppet::At::with_lock, Puppet::At::in_claim};
    start(some_gpu(), kAt[below(std::size(kAt))]);
    if (chance(3))
        programs_.back()->go_on();
    return "of his " + programs_.back()->describe();
}

std::string Hostile::move_program() {
    if (programs_.empty())
        return {};
    auto chosen = programs_.begin();
    std::advance(chosen, static_cast<long>(below(programs_.size())));
    if (chance(3)) {
        const std::string said = (*chosen)->describe();
        programs_.erase(chosen);
        return "killed: " + said;
    }
    (*chosen)->is_stopped() ? (*chosen)->go_on() : (*chosen)->stop();
    return "of his " + (*chosen)->describe();
}

// A service of the victim's has a place in the ledger, and starts a program that drops its rights: all descriptors that
// it has are his.
std::string Hostile::inherit() {
    const unsigned victim = some_victim(random_());
    const std::string uuid = some_gpu();
    const uint64_t seed = random_();
    constexpr size_t kMost = 4;
    if (held_.size() == kMost)
        held_.pop_front();
    auto hand = std::make_unique<Hand>(0, [&](const Hand::Say& say) {
        start_dropped({victim, folder_, uuid, capacity_, "service", 32 << 20}, kHostileUser, seed);
        say("no program could be started");
    });
    held_.push_back({std::move(hand), static_cast<unsigned>(1 + below(8)), false});
    return held_.back().hand->said();
}

std::string Hostile::drive_out() {
    programs_.clear();
    std::erase_if(held_, [](const Held& held) { return held.claims; });
    for (const std::string& path : files_of(folder_, kHostileUser)) {
        unsigned user = 0;
        char uuid[64];
        const std::string name = std::filesystem::path(path).filename().string();
        if (ledger::parse_ledger_name(name.c_str(), &user, uuid) && user == kHostileUser)
            remove_something(path);
    }
    if (all_names_)
        for (const unsigned victim : kUsers)
            for (const std::string& uuid : uuids_)
                remove_something(path_of(victim, uuid, ledger::kMaxNames / 2));
    claims_ = all_names_ = false;
    return "the hostile user's programs and ledgers are removed";
}

}  // namespace cuslice::tests::model
