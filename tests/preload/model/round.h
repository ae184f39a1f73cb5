// SPDX-License-Identifier: Apache-2.0
// One round of the model: four programs of two users on a machine, and what happens to them, drawn from a number.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/preload/model/hostile.h"
#include "tests/preload/model/place.h"
#include "tests/preload/model/worker.h"

namespace cuslice::tests::model {

/// A thing that a program has, under the name that its guest knows it by.
struct Thing {
    std::string kind;     // how it was made
    std::string context;  // that it ends with; empty: none
    uint64_t bytes = 0;
    bool out = false;  // of a graph: its launch has left blocks behind; of a block: others may have it open
};

/// The model's beliefs about one program.
struct Member {
    unsigned number = 0;
    unsigned user = 0;  // an index of kUsers
    std::unique_ptr<Worker> worker;
    bool ready = false;                 // it has device 0's primary context
    bool context_refused = false;       // so that its peak may be a context above the limit, for a moment
    std::vector<std::string> contexts;  // of its own
    std::string current = "0";
    std::map<std::string, Thing> things;
    bool inside = false;            // stopped in the middle of calls that make contexts or load modules
    std::vector<Identity> parents;  // that wait for it, and hold what they held
    size_t read = 0;                // of its stderr
    // By GPU: it has closed its descriptor of the ledger, and not looked for it since; the ledger was removed when
    // whoever makes the new one could not see it, and it has not looked since, or a parent of it, which never looks.
    bool closed[2] = {}, unseen[2] = {}, parent_closed[2] = {}, lost_parent[2] = {};
};

struct Totals {
    uint64_t steps = 0, rounds = 0, answers = 0, refusals = 0, longest_ms = 0;
    uint64_t settled = 0;  // starts that took longer than anybody else's call may: see settling_of()
    std::map<std::string, uint64_t> actions;
};

class Round {
  public:
    /// `hostile`: a third user is there, who attacks the ledgers. He draws from numbers of his own, so that the others
    /// do the same with and without him.
    Round(const Combination& combination, uint64_t seed, bool hostile, Totals& totals);
    /// So many steps, and the end, in which all that was taken can be had again. Throws a Finding.
    void run(unsigned steps);
    /// The last steps, and what the programs said.
    std::string story(size_t most);

  private:
    using Codes = std::vector<int>;
    struct Limits {
        uint64_t process = 0, together = 0;
    };

    uint64_t below(uint64_t end) { return random_() % end; }
    bool chance(unsigned in) { return below(in) == 0; }
    uint64_t size();
    std::string fresh(const char* kind) { return kind + std::to_string(next_name_++); }
    void log(const std::string& line);
    [[noreturn]] void fail(const std::string& what);

    // ---- programs (round.cpp)
    Limits limits_of(unsigned user) const;
    /// Where NVML lists nobody, what the driver takes is measured by the GPU's memory, which others move too, and what
    /// was exported and freed stays charged until that has grown (docs/boundaries.md). There nothing is exported, and
    /// programs that run at the same time only allocate and free. main.cpp says so.
    bool is_blurred() const { return combination_.seen == Combination::Seen::unlisted; }
    Words settings(const Member& member) const;
    Words command(const Member& member);
    int unlike_pid();
    void begin(Member& member);
    void start_cuda(Member& member);
    void retain(Member& member);
    void end_by_kill(Member& member);
    /// Asks, compares the answer, its time and the books. The CUresult; -1 if the program is gone.
    int expect(Member& member, const std::string& line, const Codes& allowed, std::string* text = nullptr);
    int judge(Member& member, const std::string& line, const Answer& answer, const Codes& allowed);
    void read_words(Member& member);
    static Identity identity_of(const Member& member);
    void check_books();
    Member* somebody(bool ready = true);
    Member* neighbour_of(const Member& member);

    // ---- the hostile user, and what he may bring about (neighbour.cpp)
    void hostile_step();
    void ask_for_own();
    bool has_little(const Member& member, unsigned gpu);
    bool is_undisturbed(const Member& member) const;
    bool reserves(const Member& member) const;
    uint64_t settling_of(const Member& member) const;
    void check_refusal(const Member& member, const std::string& words);

    // ---- steps (steps.cpp)
    void step();
    void allocate(Member& member);
    void free_one(Member& member);
    void free_thing(Member& member, const std::string& name);
    void context(Member& member);
    void end_context(Member& member, const std::string& context);
    void forget_context(Member& member, const std::string& context);
    void make_current(Member& member, const std::string& context);
    void primary(Member& member);
    void second(Member& member);
    void module_of(Member& member);
    void array(Member& member);
    void pool(Member& member);
    void piece(Member& member);
    bool may_give_away(const Member& member);
    void give_away(Member& member);
    void graph(Member& member);
    void capture(Member& member);
    void share(Member& member);
    void ask_around(Member& member);
    void drop_all(Member& member);
    void drop_kinds(Member& member, bool (*wanted)(const std::string& kind));

    // ---- what happens to programs and their surroundings (events.cpp)
    void threads(Member& member);
    void settle(Member& member);
    void fork_and_exec(Member& member);
    void close_all(Member& member);
    void stop_or_go_on();
    void surroundings();
    void all_at_once();
    void event(unsigned drawn);
    void ledgers_went();
    void looked(Member& member);
    bool is_apart() const;
    void look_again();
    void end();
    void leave(Member& member);
    void fill_up(Member& member);

    const Combination combination_;
    std::mt19937_64 random_;
    Totals& totals_;
    std::string pool_chunk_, headroom_, idle_release_;
    Place place_;
    std::unique_ptr<Hostile> hostile_;  // null: he is not there
    Member members_[4];
    struct Judged {
        Member* member;
        std::string line;
        Answer answer;
    };
    std::vector<Judged> judged_;
    std::deque<std::string> story_;
    uint64_t next_name_ = 0;
    Identity giver_;  // the process that gives exported memory away
    unsigned step_ = 0, next_pid_ = 0;
    uint64_t excess_[2][2] = {};  // by user and GPU: what was too much when the ledger had been lost
};

}  // namespace cuslice::tests::model
