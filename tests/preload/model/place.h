// SPDX-License-Identifier: Apache-2.0
// Where a round of the model happens: a fake machine, its books, the ledgers' folder, and what may be wrong with that.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake/books/books.h"
#include "fake/books/layout.h"
#include "tests/preload/guest.h"
#include "tests/preload/model/puppet.h"

namespace cuslice::tests::model {

/// How a program and NVML see each other, times what becomes of what is freed.
struct Combination {
    enum class Seen { listed, unlisted, pid_namespace, user_namespace };
    enum class Mode { direct, strict, deferred, prealloc, split };
    Seen seen = Seen::listed;
    Mode mode = Mode::direct;

    std::string name() const;
    static std::vector<Combination> all();
};

constexpr unsigned kUsers[] = {60001, 60002};
constexpr uint64_t kCapacity = 3 * kGiB;  // of each GPU

/// By what the books know a process: the pid that it has for itself, which may be another's in another namespace too,
/// and when it began.
using Identity = std::pair<int, uint64_t>;

class Place {
  public:
    /// `pool_chunk` as the machine's file has it; `room` for the ledgers, as mount(8) takes it.
    Place(const Combination& combination, const std::string& pool_chunk, const std::string& room);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    const std::string& fake() const { return fake_; }
    const std::string& books() const { return books_; }
    const std::string& ledgers() const { return ledgers_; }
    unsigned gpus() const { return gpus_; }
    /// As the ledgers' names have them, in CUDA's order.
    std::vector<std::string> uuids() const;
    /// True where a new ledger has room in the folder.
    bool has_room() const;

    /// Ends dead processes' slots in the books, and returns the bytes that each living one holds according to them.
    /// Memory that others made and gave up, and that the process still has open, is left out.
    std::map<Identity, uint64_t> held(unsigned gpu);
    /// True if a process holds the fake driver's own lock. On a GPU nobody could be stopped there, since that is
    /// inside the kernel.
    bool is_in_driver(int pid) const;

    // Changes to the ledgers' folder. Each says what was done.
    std::string remove_ledgers();
    std::string put_strangers(uint64_t random);
    /// A process of one of the users, stopped where it has the header's lock, or about there.
    std::string stop_in_ledger(uint64_t random);
    std::string fill();
    std::string make_read_only();
    /// Everything as it was, but for ledgers that were removed.
    void mend();
    bool is_mended() const { return !full_ && !read_only_ && !stopped_; }
    /// The process that is stopped, which goes on when all is mended.
    std::vector<pid_t> helpers() const;

    /// False, and a word of tests/allowed.h's, where a test can't make what a combination needs.
    static bool possible(const Combination& combination);
    /// A mount namespace of this process's own, once; false if there can be none.
    static bool own_mounts();

  private:
    struct Gpu {
        fake::Books books;
        const fake::BooksFile* file = nullptr;
        std::string lock_path, uuid;
    };
    std::vector<std::string> ledger_files() const;
    void open_books();

    Folder folder_;
    std::string books_, ledgers_, fake_;
    unsigned gpus_;
    std::vector<std::unique_ptr<Gpu>> open_;
    std::vector<std::string> strangers_;
    bool mounted_ = false, full_ = false, read_only_ = false;
    std::unique_ptr<Puppet> stopped_;
    unsigned mended_ = 0;
};

}  // namespace cuslice::tests::model
