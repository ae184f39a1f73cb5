// SPDX-License-Identifier: Apache-2.0
#include "fake/books/books.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fake/books/file_lock.h"
#include "fake/books/liveness.h"

namespace cuslice::fake {
namespace {

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string usual_folder() { return "/dev/shm/cuslice-fake-" + std::to_string(getuid()); }

/// Anybody may be the first to make the usual folder. Links in somebody else's would lead to the user's own files, and
/// its files could be shortened while they are mapped.
bool is_users_own(const std::string& folder) {
    struct stat info {};
    if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
        return false;
    return info.st_uid == getuid() || info.st_uid == geteuid();
}

}  // namespace

std::string books_folder() {
    const char* folder = std::getenv("CUSLICE_FAKE_DIR");
    if (folder != nullptr && *folder != '\0')
        return folder;
    return usual_folder();
}

bool make_books_folder(std::string& error) {
    const std::string folder = books_folder();
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        error = system_error("can't make the folder of the fake GPU's books " + folder + " (CUSLICE_FAKE_DIR)");
        return false;
    }
    if (folder == usual_folder() && !is_users_own(folder)) {
        error = "can't use the folder of the fake GPU's books " + folder +
                ": it is another user's, or no folder (CUSLICE_FAKE_DIR)";
        return false;
    }
    return true;
}

bool Books::map(const std::string& path, bool create, const GpuSpec* gpu, std::string& error) {
    const int flags = (create ? O_RDWR | O_CREAT : O_RDWR) | O_CLOEXEC | O_NOFOLLOW;
    lock_file_ = ::open((path + ".lock").c_str(), flags, 0600);
    if (lock_file_ < 0) {
        error = system_error("can't open the fake GPU's books " + path + ".lock");
        return false;
    }
    const FileLock lock(lock_file_);
    const int file = ::open(path.c_str(), flags, 0600);
    struct stat info {};
    if (file < 0 || fstat(file, &info) != 0) {
        error = system_error("can't open the fake GPU's books " + path);
        if (file >= 0)
            close(file);
        return false;
    }
    inode_ = info.st_ino;
    path_ = path;
    // Allocated before it is mapped: a hole on a full file system would be a SIGBUS in the program.
    const int full = create ? posix_fallocate(file, 0, sizeof(BooksFile)) : 0;
    void* memory = MAP_FAILED;
    if (full == 0 && (create || info.st_size >= static_cast<off_t>(sizeof(BooksFile)))) {
        memory = mmap(nullptr, sizeof(BooksFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (memory == MAP_FAILED) {
        error = "can't use the fake GPU's books " + path + ": " + std::strerror(full != 0 ? full : errno);
        return false;
    }
    file_ = static_cast<BooksFile*>(memory);
    BooksHeader& header = file_->header;
    // Processes that open the books at the same time write the same values.
    if (header.magic == 0 && gpu != nullptr) {
        header.version = kBooksVersion;
        header.slots = kBooksSlots;
        header.capacity = gpu->memory;
        header.index = gpu->index;
        std::strncpy(header.uuid, uuid_text(*gpu).c_str(), sizeof header.uuid - 1);
        std::strncpy(header.name, gpu->name.c_str(), sizeof header.name - 1);
        header.magic = kBooksMagic;
    }
    if (header.magic != kBooksMagic || header.version != kBooksVersion || header.slots != kBooksSlots) {
        error = path + " is not the books of a fake GPU of this version; remove it and " + path + ".lock";
        munmap(memory, sizeof(BooksFile));
        file_ = nullptr;
        return false;
    }
    capacity_ = gpu != nullptr ? gpu->memory : header.capacity;
    header.capacity = capacity_;
    return true;
}

bool Books::open(const GpuSpec& gpu, std::string& error) {
    return make_books_folder(error) && map(books_folder() + "/" + uuid_text(gpu), true, &gpu, error);
}

bool Books::open_existing(const std::string& path, std::string& error) { return map(path, false, nullptr, error); }

void Books::end(Slot& slot, uint32_t number, SlotPhase phase) {
    // Before, so that somebody pays all the time.
    drop_all(number, phase);
    if (!slot.phase.compare_exchange_strong(phase, phase.as(SlotState::Ended)))
        return;
    slot.ended_order = ++file_->header.ended;
    // A slot whose lock is taken has its next owner already, which sets its bit in `live` itself.
    if (&slot != slot_ && set_lock(lock_file_, 1 + static_cast<off_t>(number), F_WRLCK, F_SETLK) != 0)
        return;
    if (slot.phase.load().state() == SlotState::Ended)
        file_->header.live[number / 64] &= ~(1ULL << number % 64);
    // An owner that goes on, maybe for long, leaves the slot to the next one.
    set_lock(lock_file_, 1 + static_cast<off_t>(number), F_UNLCK, F_SETLK);
}

bool Books::end_the_dead() {
    bool known = true;
    each_live([&](Slot& slot, uint32_t number) {
        if (&slot == slot_)
            return;
        const SlotPhase phase = slot.phase;
        if (phase.state() != SlotState::Live)
            return;
        const Life life = life_of_owner(slot, number, lock_file_, inode_);
        if (life == Life::Ended)
            end(slot, number, phase);
        known = known && life != Life::Unknown;
    });
    end_undescribed();
    return known;
}

uint32_t Books::choose_slot(const std::bitset<kBooksSlots>& taken) const {
    uint32_t free = kBooksSlots, oldest = kBooksSlots, ended = 0;
    for (uint32_t i = 0; i < kBooksSlots; i++) {
        const Slot& slot = file_->slots[i];
        if (taken[i])
            continue;
        const SlotState state = slot.phase.load().state();
        if (state == SlotState::Free && free == kBooksSlots)
            free = i;
        if (state != SlotState::Ended)
            continue;
        ended++;
        if (oldest == kBooksSlots || slot.ended_order < file_->slots[oldest].ended_order)
            oldest = i;
    }
    return ended >= kBooksKeptEnded || free == kBooksSlots ? oldest : free;
}

bool Books::claim_slot(std::string& error) {
    const FileLock lock(lock_file_);
    end_the_dead();
    remove_stray_files();
    // Byte 0 may not have been waited for, and can be lost to an unlock by another thread of its holder's process, such
    // as NVML's: somebody may be claiming a slot that is still free to look at, or have had it meanwhile.
    std::bitset<kBooksSlots> taken;
    uint32_t chosen = 0;
    for (;; taken.set(chosen)) {
        chosen = choose_slot(taken);
        if (chosen == kBooksSlots) {
            error = "the fake GPU has no room for another process: " + std::to_string(kBooksSlots) + " are using it";
            return false;
        }
        const off_t byte = 1 + static_cast<off_t>(chosen);
        if (set_lock(lock_file_, byte, F_WRLCK, F_SETLK) == 0) {
            if (file_->slots[chosen].phase.load().state() != SlotState::Live)
                break;
            set_lock(lock_file_, byte, F_UNLCK, F_SETLK);
            continue;
        }
        if (errno != EAGAIN && errno != EACCES) {
            error = system_error("can't lock a slot in the fake GPU's books");
            return false;
        }
    }
    slot_ = &file_->slots[chosen];
    slot_->claim = Claim();
    for (auto* word : {&slot_->used, &slot_->peak, &slot_->context_bytes, &slot_->module_bytes, &slot_->ended_order}) {
        *word = 0;
    }
    slot_->contexts = 0;
    slot_->pid = getpid();
    slot_->start_time = process_start_time(getpid());
    int ancestor = getpid();
    for (auto& noted : slot_->ancestors)
        noted = ancestor = ancestor > 1 ? parent_process(ancestor) : 0;
    slot_->mapped_at = reinterpret_cast<uintptr_t>(file_);
    slot_->phase = SlotPhase(SlotState::Live, slot_->phase.load().owner() + 1);
    raise(file_->header.live_words, chosen / 64 + 1);
    file_->header.live[chosen / 64] |= 1ULL << chosen % 64;
    used_ = 0;
    return true;
}

void Books::end_slot() {
    if (slot_ == nullptr || slot_->pid.load() != getpid())
        return;  // a forked child's end is not its parent's
    const FileLock lock(lock_file_);
    const SlotPhase phase = slot_->phase;
    if (phase.state() == SlotState::Live)
        end(*slot_, own_number(), phase);
}

bool Books::charge_last(uint64_t bytes) {
    const FileLock lock(lock_file_);
    // Others may hold a claim that they are about to withdraw, and be interrupted meanwhile: as long as what is truly
    // used leaves room, that is waited for, and then their claims are cancelled. The dead are ended in between.
    constexpr int kAtOnce = 100, kInAll = kAtOnce + 2000;  // 2,000 naps of 100 µs: 200 ms
    for (int attempt = 0; attempt < kInAll; attempt++) {
        end_the_dead();
        const Claim pending = claim(used_ + bytes);
        if (claimed() <= capacity_ && confirm(pending)) {
            commit(used_ + bytes);
            return true;
        }
        withdraw();
        const uint64_t used = used_now();
        if (used > capacity_ || bytes > capacity_ - used)
            return false;
        if (attempt < kAtOnce) {
            sched_yield();
            continue;
        }
        usleep(100);
        if (attempt % 16 == 0)
            cancel_claims_of_others();
    }
    return false;
}

// One whose owner was stopped between publishing it and reading the others' would count for as long as it stands still.
// A cancelled owner tries again.
void Books::cancel_claims_of_others() {
    each_live([&](Slot& slot, uint32_t) {
        Claim claim = slot.claim;
        if (&slot == slot_ || !claim.is_pending())
            return;
        slot.claim.compare_exchange_strong(claim, Claim::committed(slot.used));
    });
}

uint64_t Books::used_now() const {
    uint64_t sum = 0;
    each_live([&](const Slot& slot, uint32_t) { sum += held_bytes(slot); });
    return sum + inherited_by_all();
}

uint64_t Books::used_with_others() {
    bool dead = any_described();
    each_live([&](const Slot& slot, uint32_t number) {
        dead = dead || (&slot != slot_ && life_of_owner(slot, number, lock_file_, inode_) == Life::Ended);
    });
    if (dead) {
        const FileLock lock(lock_file_);
        end_the_dead();
    }
    return used_now();
}

std::vector<Holder> Books::holders(bool* known) {
    std::vector<Holder> all;
    {
        const FileLock lock(lock_file_);
        const bool all_known = end_the_dead();
        if (known != nullptr)
            *known = all_known;
    }
    for (const Slot& slot : file_->slots) {
        const SlotState state = slot.phase.load().state();
        if (state == SlotState::Free)
            continue;
        Holder holder;
        holder.pid = slot.pid;
        holder.live = state == SlotState::Live;
        const auto number = static_cast<uint32_t>(&slot - file_->slots);
        if (holder.live)
            life_of_owner(slot, number, lock_file_, inode_, &holder.pid_here);
        holder.used = holder.live ? held_bytes(slot) + inherited(number) : slot.used.load();
        holder.peak = std::max<uint64_t>(slot.peak, holder.used);
        holder.unlisted = unlisted(number, slot.phase);
        holder.context_bytes = slot.context_bytes;
        holder.module_bytes = slot.module_bytes;
        holder.contexts = slot.contexts;
        holder.order = slot.ended_order;
        for (const auto& ancestor : slot.ancestors) {
            if (ancestor != 0)
                holder.ancestors.push_back(ancestor);
        }
        all.push_back(holder);
    }
    return all;
}

}  // namespace cuslice::fake
