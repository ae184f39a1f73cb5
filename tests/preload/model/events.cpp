// SPDX-License-Identifier: Apache-2.0
// Events in programs and around them: threads, forks, signals, changes of the ledgers' folder; and the end of a round.
#include <algorithm>
#include <thread>

#include "tests/preload/model/round.h"

namespace cuslice::tests::model {
namespace {

std::string text(uint64_t number) { return std::to_string(number); }

constexpr uint64_t kImpossible = uint64_t{1} << 40;

}  // namespace

void Round::event(unsigned drawn) {
    constexpr const char* kNames[] = {"all at once", "all at once",  "all at once",  "kill",         "stop",
                                      "stop",        "surroundings", "surroundings", "surroundings", "begin"};
    totals_.actions[kNames[drawn]]++;
    if (drawn < 3)
        return all_at_once();
    if (drawn == 3) {
        Member& member = members_[below(4)];
        if (member.worker)
            end_by_kill(member);
        return;
    }
    if (drawn < 6)
        return stop_or_go_on();
    if (drawn < 9)
        return surroundings();
    for (Member& member : members_)
        if (!member.worker)
            return begin(member);
}

// ---- one program ----------------------------------------------------------------------------------------------------

void Round::threads(Member& member) {
    make_current(member, "0");
    std::string said;
    switch (below(5)) {
        case 0:
            expect(member, "storm 3 60 3000000", {kSuccess}, &said);
            break;
        case 1:
            expect(member, "endings 4 300000", {kSuccess}, &said);
            break;
        case 2:
            expect(member, "forks 2 2", {kSuccess}, &said);
            break;
        case 3:
            expect(member, "mix 4 65536", {kSuccess});
            return settle(member);
        default:
            expect(member, "lifetimes 2 2 2", {kSuccess});
            return settle(member);
    }
    if (split_words(said).at(1) != "0")
        fail("program " + text(member.number) + ": calls went wrong: " + said);
    settle(member);
}

// A measured step that ends while other threads allocate is finished at the program's next call; what others take until
// then would count as its own.
void Round::settle(Member& member) {
    if (is_blurred())
        expect(member, "info", {kSuccess});
}

// Another program in the same process; or a child that goes on in its place, while its parent holds what it held.
void Round::fork_and_exec(Member& member) {
    if (chance(2) && member.parents.empty()) {
        const Identity parent = identity_of(member);
        expect(member, "fork", {kSuccess});
        member.worker->look_who();
        member.parents.push_back(parent);
        std::copy(member.closed, member.closed + 2, member.parent_closed);
        std::copy(member.unseen, member.unseen + 2, member.lost_parent);
        expect(member, "alloc none 1000", {kNotInitialized, kInvalidContext});
        expect(member, "retain 0", {kNotInitialized});
    }
    expect(member, "exec linked", {kSuccess});
    for (bool* const flags : {member.closed, member.unseen})
        flags[0] = flags[1] = false;
    start_cuda(member);
}

void Round::close_all(Member& member) {
    expect(member, "closeall " + place_.books(), {kSuccess});
    member.closed[0] = member.closed[1] = true;
    allocate(member);
}

// ---- around them ----------------------------------------------------------------------------------------------------

void Round::stop_or_go_on() {
    for (Member& member : members_)
        if (member.worker && member.worker->is_stopped()) {
            log("program " + text(member.number) + " goes on");
            member.worker->go_on();
            return look_again();
        }
    Member* const member = somebody(false);
    if (!member)
        return;
    log("program " + text(member->number) + " is stopped");
    member->worker->stop();
}

void Round::surroundings() {
    std::string done;
    switch (below(8)) {
        case 0:
        case 1:
            done = place_.remove_ledgers();
            ledgers_went();
            break;
        case 2:
            done = place_.put_strangers(random_());
            break;
        case 3:
            done = place_.stop_in_ledger(random_());
            break;
        case 4:
            done = place_.fill();
            break;
        case 5:
            done = place_.make_read_only();
            break;
        default:
            place_.mend();
            done = "the folder is mended";
    }
    log(done);
    look_again();
}

// Every second program has namespaces of its own.
bool Round::is_apart() const {
    return combination_.seen == Combination::Seen::pid_namespace ||
           combination_.seen == Combination::Seen::user_namespace;
}

// The process that makes the new ledger finds members of the old one by their descriptors and pids, and so not all of
// them: docs/sharing.md says so.
void Round::ledgers_went() {
    for (Member& member : members_)
        for (unsigned gpu = 0; gpu < place_.gpus(); ++gpu) {
            member.unseen[gpu] = member.unseen[gpu] || (member.worker && (is_apart() || member.closed[gpu]));
            member.lost_parent[gpu] =
                member.lost_parent[gpu] || (!member.parents.empty() && (is_apart() || member.parent_closed[gpu]));
        }
}

// It was refused something on the GPU that is current, and has looked for the ledger there.
void Round::looked(Member& member) {
    if (!place_.is_mended())
        return;
    const unsigned gpu = place_.gpus() > 1 && member.current == "1";
    member.unseen[gpu] = member.closed[gpu] = false;
}

void Round::look_again() {
    for (Member& member : members_) {
        if (!(member.unseen[0] || member.unseen[1]) || !member.ready || !member.worker || member.worker->is_stopped())
            continue;
        expect(member, "alloc none " + text(kImpossible), {kOutOfMemory});
        looked(member);
    }
}

// Several programs at the same time, and something that happens meanwhile.
void Round::all_at_once() {
    struct Going {
        Member* member;
        Words lines;
    };
    std::vector<Going> going;
    for (Member& member : members_) {
        if (!member.worker || !member.ready || member.worker->is_stopped() || chance(5))
            continue;
        make_current(member, "0");
        Going one{&member, {}};
        const bool linked = std::any_of(member.things.begin(), member.things.end(),
                                        [](const auto& thing) { return thing.second.kind == "ipc"; });
        switch (is_blurred() ? 0 : below(linked ? 3 : 5)) {
            case 0:
                one.lines = {"storm 2 200 3000000"};
                break;
            case 1:
                one.lines = {"endings 5 300000"};
                break;
            case 2:
                one.lines = {"mix 10 65536"};
                break;
            default:
                drop_kinds(member, [](const std::string& kind) { return kind != "module" && kind != "kernels"; });
                one.lines = {"random " + text(below(1000000)) + (chance(3) ? " managed" : " arrays"), "steps 60",
                             "finish"};
        }
        going.push_back(one);
    }
    for (const Going& one : going)
        for (const std::string& line : one.lines)
            one.member->worker->send(line);
    std::this_thread::sleep_for(std::chrono::microseconds(below(20000)));
    Member* disturbed = going.empty() ? nullptr : going[below(going.size())].member;
    const uint64_t how = below(6);
    if (disturbed && how == 0) {
        for (bool elsewhere = false; !elsewhere;) {
            disturbed->worker->stop();
            elsewhere = !place_.is_in_driver(disturbed->worker->host_pid());
            if (!elsewhere)
                disturbed->worker->go_on();
        }
        for (const Going& one : going)
            if (one.member == disturbed)
                disturbed->inside = one.lines.at(0).rfind("storm", 0) != 0;
        log("program " + text(disturbed->number) + " is stopped in the middle");
    } else if (disturbed && how == 1) {
        std::erase_if(going, [&](const Going& one) { return one.member == disturbed; });
        end_by_kill(*disturbed);
    } else if (how == 2) {
        log(place_.remove_ledgers());
        ledgers_went();
    }
    const auto finish = [&](const Going& one) {
        for (const std::string& line : one.lines) {
            const Answer answer = one.member->worker->receive();
            const Words words = split_words(answer.text);
            if ((line.rfind("storm", 0) == 0 || line.rfind("endings", 0) == 0) && words.size() > 1 && words[1] != "0")
                fail("program " + text(one.member->number) + ": calls went wrong: " + line + ": " + answer.text);
            judged_.push_back({one.member, line, answer});
        }
    };
    for (const Going& one : going)
        if (!one.member->worker->is_stopped())
            finish(one);
    // Nobody else has answers outstanding, so the books stand still but for the stopped one's.
    if (disturbed && how == 0) {
        for (const Going& one : going)
            if (one.member != disturbed) {
                allocate(*one.member);
                free_one(*one.member);
            }
        disturbed->worker->go_on();
        log("program " + text(disturbed->number) + " goes on");
        for (const Going& one : going)
            if (one.member == disturbed)
                finish(one);
        disturbed->inside = false;
    }
    for (const Judged& one : judged_)
        judge(*one.member, one.line, one.answer, {0});
    judged_.clear();
    look_again();
}

// ---- the end --------------------------------------------------------------------------------------------------------

// Everything is given back, and one program of each user can have all that they had together.
void Round::end() {
    place_.mend();
    if (hostile_)
        log(hostile_->drive_out());
    for (Member& member : members_) {
        if (!member.worker)
            continue;
        if (member.worker->is_stopped())
            member.worker->go_on();
        if (member.ready)
            drop_all(member);
    }
    for (unsigned user = 0; user < 2; ++user) {
        Member& survivor = members_[2 * user + below(2)];
        Member& other = members_[survivor.number ^ 1];
        if (other.worker)
            leave(other);
        // Its parent would go on holding what it held.
        if (survivor.worker && !survivor.parents.empty())
            end_by_kill(survivor);
        if (!survivor.worker)
            begin(survivor);
        if (survivor.ready)
            primary(survivor);
        if (!survivor.ready)
            retain(survivor);
        if (!survivor.ready)
            fail("program " + text(survivor.number) + " has no context, and nobody else holds anything");
    }
    for (unsigned user = 0; user < 2; ++user)
        for (Member& member : members_)
            if (member.user == user && member.worker)
                fill_up(member);
    for (Member& member : members_)
        if (member.worker)
            leave(member);
    for (unsigned gpu = 0; gpu < place_.gpus(); ++gpu)
        if (!place_.held(gpu).empty())
            fail("somebody still holds memory of GPU " + text(gpu) + ", and all have ended");
}

void Round::leave(Member& member) {
    if (chance(2))
        return end_by_kill(member);
    const int code = member.worker->finish();
    log("program " + text(member.number) + " ends with " + text(static_cast<unsigned>(code)));
    read_words(member);
    if (code != 0)
        fail("program " + text(member.number) + " ended with " + text(static_cast<unsigned>(code)));
    member.worker.reset();
}

void Round::fill_up(Member& member) {
    const bool split = combination_.mode == Combination::Mode::split;
    const Limits limits = limits_of(member.user);
    const uint64_t limit = std::min(limits.process, limits.together) / (split ? 2 : 1);
    expect(member, "fill " + text(kMiB), {kOutOfMemory});
    const auto held = place_.held(0);
    const uint64_t used = held.at(identity_of(member));
    // The headroom, and less than a step of what is allocated; at its largest an eighth of what the driver takes.
    constexpr uint64_t kLeft = 16 * kMiB + 2 * kMiB;
    if (used + kLeft < limit)
        fail("program " + text(member.number) + " could have only " + text(used) + " of " + text(limit) +
             " bytes again");
    expect(member, "freeall", {kSuccess, kInvalidValue});  // what ended with its context is known to the program still
}

}  // namespace cuslice::tests::model
