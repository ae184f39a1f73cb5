// SPDX-License-Identifier: Apache-2.0
// A user who does in the ledgers' folder whatever an account of its own lets him do, so that the others lose by it.
//
// He gains nothing where the others have their limits and what is theirs, and wait for nobody. What is theirs:
//
//   - Whoever has joined has its limit, whatever he does.
//   - A reservation can be refused because of him, as he may honestly reserve all of a GPU that no ceiling of the
//     system's keeps from him. So what he claims by forged text may do the same while it stands, and not more: only
//     jobs reserve, so only they can be refused their start, and the line has to name him.
//   - A name of each user's is free unless he had all of them first; then the start is refused, and the line names
//     him. What he has the administrator removes.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/preload/model/hand.h"
#include "tests/preload/model/puppet.h"

namespace cuslice::tests::model {

constexpr unsigned kHostileUser = 60003;

class Hostile {
  public:
    /// The folder of the ledgers, and the GPUs by the names that ledgers have for them.
    Hostile(std::string folder, std::vector<std::string> uuids, uint64_t capacity, uint64_t seed);

    /// Something that he does. Says what, for people; empty: not now.
    std::string step();
    bool acts() { return below(8) == 0; }

    /// True while a ledger of his may say that he has reserved something.
    bool claims() const { return claims_; }
    /// True once he has taken every name of some ledger that was free.
    bool has_all_names() const { return all_names_; }
    /// The administrator's remedy: ends his processes that claim something, removes his ledgers, and one name where he
    /// has all of a user's. His locks stay, and so does what else he has put into the folder.
    std::string drive_out();

    uint64_t below(uint64_t end) { return random_() % end; }

  private:
    struct Held {
        std::unique_ptr<Hand> hand;
        unsigned steps;  // of his, after which he lets go
        bool claims;
    };
    bool chance(unsigned in) { return below(in) == 0; }
    const std::string& some_gpu() { return uuids_[below(uuids_.size())]; }
    std::string path_of(unsigned user, const std::string& uuid, unsigned number = 0) const;
    std::string own_file();
    std::string whole_ledger(const std::string& uuid) const;
    void start(const std::string& uuid, Puppet::At at);
    std::string hold(bool claims, const std::function<void(const Hand::Say&)>& work);

    std::string lock();
    std::string squat();
    std::string flood();
    std::string clear();
    std::string program();
    std::string move_program();
    std::string overwrite();
    std::string reshape();
    std::string keep_at_it();
    std::string inherit();
    void let_go_in_time();
    bool has_room() const;

    const std::string folder_;
    const std::vector<std::string> uuids_;
    const uint64_t capacity_;
    std::mt19937_64 random_;
    std::list<Held> held_;
    std::list<std::unique_ptr<Puppet>> programs_;
    bool claims_ = false, all_names_ = false;
};

}  // namespace cuslice::tests::model
