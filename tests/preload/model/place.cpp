// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/place.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/allowed.h"

namespace cuslice::tests::model {

std::string Combination::name() const {
    constexpr const char* kSeen[] = {"listed", "not-listed", "pid-namespace", "user-namespace"};
    constexpr const char* kMode[] = {"direct", "growth-strict", "growth-deferred", "prealloc", "split"};
    return std::string(kSeen[static_cast<int>(seen)]) + "/" + kMode[static_cast<int>(mode)];
}

std::vector<Combination> Combination::all() {
    std::vector<Combination> all;
    for (const Seen seen : {Seen::listed, Seen::unlisted, Seen::pid_namespace, Seen::user_namespace})
        for (const Mode mode : {Mode::direct, Mode::strict, Mode::deferred, Mode::prealloc, Mode::split})
            all.push_back({seen, mode});
    return all;
}

bool Place::own_mounts() {
    static const bool own = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
    return own;
}

bool Place::possible(const Combination& combination) {
    if (!can_be_other_users() || !can_unshare(CLONE_NEWNS) || !can_let_others_in() || !own_mounts())
        return false;
    if (combination.seen == Combination::Seen::pid_namespace)
        return can_unshare(CLONE_NEWPID | CLONE_NEWNS);
    if (combination.seen == Combination::Seen::user_namespace)
        return can_unshare(CLONE_NEWUSER, 60001);
    return true;
}

Place::Place(const Combination& combination, const std::string& pool_chunk, const std::string& room)
    : books_(folder_.path() + "/books"),
      ledgers_(folder_.path() + "/ledgers"),
      gpus_(combination.mode == Combination::Mode::split ? 1 : 2) {
    namespace fs = std::filesystem;
    fs::permissions(folder_.path(), fs::perms(0755));
    for (const std::string& made : {books_, ledgers_})
        fs::create_directory(made);
    fs::permissions(books_, fs::perms(0777));
    // As /dev/shm is: a file system of its own in memory, sticky, and small, so that it can be full.
    mounted_ = mount("model", ledgers_.c_str(), "tmpfs", 0, ("mode=1777,size=" + room).c_str()) == 0 &&
               mount(nullptr, ledgers_.c_str(), nullptr, MS_SHARED, nullptr) == 0;
    if (!mounted_)
        throw std::runtime_error("no mount at " + ledgers_);
    std::string text =
        "[[gpu]]\nprofile = \"laptop-2g\"\nmemory = \"3GiB\"\ncontext = \"40MiB\"\nmodule = \"2MiB\"\n"
        "lazy-load = \"4MiB\"\npool-chunk = \"" +
        pool_chunk + "\"\n";
    if (gpus_ > 1)
        text += "count = " + std::to_string(gpus_) + "\n";
    text += "[driver]\nversion = \"580.95.05\"\n";
    if (combination.seen == Combination::Seen::unlisted)
        text += "process-list = \"empty\"\n";
    fake_ = folder_.write("machine.toml", text);
    open_books();
}

// Made by a program without cuslice, and then everybody's, as a driver is.
void Place::open_books() {
    {
        Guest first(Guest::route("linked"), raw(fake_, books_));
        for (unsigned gpu = 0; gpu < gpus_; ++gpu)
            if (first.code("init") != kSuccess || first.code("retain " + std::to_string(gpu)) != kSuccess)
                throw std::runtime_error("no GPU: " + first.err());
        // In CUDA's order.
        for (unsigned gpu = 0; gpu < gpus_; ++gpu) {
            auto one = std::make_unique<Gpu>();
            one->uuid = split_words(first.ask("uuid " + std::to_string(gpu))).at(1);
            const std::string path = books_ + "/" + one->uuid;
            one->lock_path = path + ".lock";
            chmod(path.c_str(), 0666);
            chmod(one->lock_path.c_str(), 0666);
            std::string error;
            if (!one->books.open_existing(path, error))
                throw std::runtime_error(error);
            const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
            void* const mapped = mmap(nullptr, sizeof(fake::BooksFile), PROT_READ, MAP_SHARED, file, 0);
            close(file);
            if (mapped == MAP_FAILED)
                throw std::runtime_error("can't map " + path);
            one->file = static_cast<const fake::BooksFile*>(mapped);
            open_.push_back(std::move(one));
        }
        first.finish();
    }
}

Place::~Place() {
    mend();
    if (mounted_)
        umount2(ledgers_.c_str(), MNT_DETACH);
    for (const auto& gpu : open_)
        munmap(const_cast<fake::BooksFile*>(gpu->file), sizeof(fake::BooksFile));
}

std::map<Identity, uint64_t> Place::held(unsigned gpu) {
    Gpu& one = *open_.at(gpu);
    one.books.holders();  // ends the dead
    std::map<Identity, uint64_t> held;
    for (const fake::Slot& slot : one.file->slots) {
        const fake::SlotPhase phase = slot.phase.load();
        if (phase.state() != fake::SlotState::Live)
            continue;
        const auto number = static_cast<uint32_t>(&slot - one.file->slots);
        held[{slot.pid.load(), slot.start_time.load()}] += slot.used.load() + one.books.unlisted(number, phase);
    }
    return held;
}

bool Place::is_in_driver(int pid) const {
    for (const auto& gpu : open_) {
        const int file = open(gpu->lock_path.c_str(), O_RDWR | O_CLOEXEC);
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        lock.l_len = 1;
        // An open file description's: closing this descriptor gives up nothing of the books' own.
        const bool held = fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
        close(file);
        if (held && (lock.l_pid == pid || lock.l_pid <= 0))
            return true;
    }
    return false;
}

std::vector<std::string> Place::ledger_files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(ledgers_)) {
        struct stat info {};
        if (entry.path().extension() != ".ledger" || lstat(entry.path().c_str(), &info) != 0)
            continue;
        const bool of_a_user = std::find(std::begin(kUsers), std::end(kUsers), info.st_uid) != std::end(kUsers);
        if (S_ISREG(info.st_mode) && of_a_user)
            files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string Place::remove_ledgers() {
    unsigned count = 0;
    std::error_code read_only;
    for (const std::string& file : ledger_files())
        count += std::filesystem::remove(file, read_only);
    return std::to_string(count) + " ledgers removed";
}

// Under the name of a user who is not here, and under that of one who is and has no ledger yet.
std::string Place::put_strangers(uint64_t random) {
    const auto files = ledger_files();
    if (files.empty())
        return "no ledger to be beside";
    const std::string name = std::filesystem::path(files[random % files.size()]).filename().string();
    const std::string path = ledgers_ + "/" + std::to_string(60010 + random / 8 % 3) + name.substr(name.find('-'));
    const auto user = static_cast<uid_t>(60010 + random / 8 % 3);
    if (std::filesystem::exists(std::filesystem::symlink_status(path)))
        return "a stranger is there already";
    if (read_only_ || full_)
        return "no room for a stranger";
    switch (random / 64 % 4) {
        case 0:
            if (mkfifo(path.c_str(), 0666) != 0)
                return "no FIFO";
            break;
        case 1:
            std::filesystem::create_symlink("/dev/zero", path);
            break;
        case 2: {
            std::ofstream(path) << std::string(300000, 'e');
            break;
        }
        default:
            std::filesystem::create_directory(path);
    }
    (void)!lchown(path.c_str(), user, user);
    strangers_.push_back(path);
    return "a stranger of kind " + std::to_string(random / 64 % 4) + " at " + path;
}

// In a job of its own, which the user's other processes are not in. They are all in the same file.
std::string Place::stop_in_ledger(uint64_t random) {
    if (!Puppet::possible())
        return "nobody can be traced here";
    if (stopped_ || read_only_ || full_)
        return "nobody more is stopped";
    const Puppet::Wish wish{kUsers[random % 2], ledgers_,  open_[random / 2 % gpus_]->uuid,
                            kCapacity,          "stopped", uint64_t{64} * kMiB};
    constexpr Puppet::At kAt[] = {Puppet::At::with_lock, Puppet::At::with_lock, Puppet::At::in_claim,
                                  Puppet::At::anywhere};
    stopped_ = std::make_unique<Puppet>(wish, kAt[random / 8 % 4], random / 32);
    return stopped_->describe();
}

std::vector<pid_t> Place::helpers() const {
    return stopped_ ? std::vector<pid_t>{stopped_->pid()} : std::vector<pid_t>{};
}

std::vector<std::string> Place::uuids() const {
    std::vector<std::string> uuids;
    for (const auto& gpu : open_)
        uuids.push_back(gpu->uuid);
    return uuids;
}

bool Place::has_room() const {
    struct statvfs info {};
    return statvfs(ledgers_.c_str(), &info) == 0 && uint64_t{info.f_bavail} * info.f_bsize >= 2 * kMiB / 4;
}

std::string Place::fill() {
    const int file = open((ledgers_ + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string page(4096, 'f');
    while (write(file, page.data(), page.size()) > 0) {
    }
    close(file);
    full_ = true;
    return "the folder is full";
}

// Descriptors that are open stay writable, as where a container mounts the folder so for the next program.
std::string Place::make_read_only() {
    if (mount(ledgers_.c_str(), ledgers_.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        mount(nullptr, ledgers_.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
        return "no mount";
    read_only_ = true;
    return "the folder is read-only";
}

void Place::mend() {
    // It goes on and has what it wanted, and then it ends; or it is killed where it stands.
    if (stopped_ && ++mended_ % 2)
        stopped_->go_on();
    stopped_.reset();
    if (read_only_)
        umount2(ledgers_.c_str(), MNT_DETACH);
    read_only_ = false;
    if (full_)
        std::filesystem::remove(ledgers_ + "/filler");
    full_ = false;
    for (const std::string& path : strangers_)
        std::filesystem::remove(path);
    strangers_.clear();
}

}  // namespace cuslice::tests::model
