// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/mischief.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "policy/ledger/ledger.h"
#include "tests/preload/model/forge.h"
#include "tests/preload/model/hand.h"

namespace cuslice::tests::model {
namespace {

namespace fs = std::filesystem;

std::string text(uint64_t number) { return std::to_string(number); }

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

std::vector<std::string> all_files(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(folder, gone))
        files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
}

bool is_owned(const std::string& path, unsigned user) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0 && info.st_uid == user;
}

std::string hex(uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
    return digits;
}

Known known_in(const std::string& folder) {
    Known known{{getpid(), getppid(), 1}, {}};
    for (const std::string& path : all_files(folder)) {
        unsigned user = 0;
        uint64_t id = 0;
        if (ledger::parse_presence_name(name_of(path).c_str(), &user, &id))
            known.presences.push_back(id);
    }
    for (const unsigned user : {60001u, 60002u, geteuid()})
        for (const std::string& process : files_of("/proc", user))
            if (const int pid = atoi(name_of(process).c_str()); pid > 0)
                known.pids.push_back(pid);
    return known;
}

// A ledger is mostly a hole. Written out, a copy would take room that is the others'.
void copy_without_holes(const std::string& from, const std::string& to) {
    constexpr size_t kPage = 4096;
    const int in = open(from.c_str(), O_RDONLY | ledger::kSafely);
    const int out = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const std::string nothing(kPage, '\0');
    std::string page(kPage, '\0');
    off_t at = 0;
    for (ssize_t count; (count = pread(in, page.data(), kPage, at)) > 0; at += count)
        if (page != nothing)
            (void)!pwrite(out, page.data(), static_cast<size_t>(count), at);
    (void)!ftruncate(out, at);
    for (const int file : {in, out})
        if (file >= 0)
            close(file);
}

}  // namespace

std::vector<std::string> files_of(const std::string& folder, unsigned user) {
    std::vector<std::string> files = all_files(folder);
    std::erase_if(files, [&](const std::string& path) { return !is_owned(path, user); });
    return files;
}

std::string lock_somewhere(const std::string& folder, uint64_t random, bool briefly) {
    std::vector<std::string> files = all_files(folder);
    std::erase_if(files, [](const std::string& path) { return is_owned(path, geteuid()); });
    if (files.empty())
        return "nothing to lock";
    std::mt19937_64 numbers(random);
    const std::string path = files[numbers() % files.size()];
    const int file = open(path.c_str(), O_RDONLY | ledger::kSafely);
    if (file < 0)
        return "may not open " + name_of(path);
    struct flock lock {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    constexpr off_t kStarts[] = {0, 0, 1, 64, 4096, 1 << 20};
    lock.l_start = kStarts[numbers() % std::size(kStarts)];
    lock.l_len = numbers() % 3 == 0 ? 0 : static_cast<off_t>(1 + numbers() % 4096);
    const auto kind = numbers() % 4;
    int result = -1;
    if (kind == 0)
        result = fcntl(file, F_SETLK, &lock);
    if (kind == 1)
        result = fcntl(file, F_OFD_SETLK, &lock);
    if (kind == 2)
        result = flock(file, LOCK_EX | LOCK_NB);
    if (kind == 3)
        result = fcntl(file, F_SETLEASE, F_RDLCK);
    constexpr const char* kKinds[] = {"process's", "open file's", "whole", "leased"};
    const std::string said = std::string(kKinds[kind]) + " lock on " + name_of(path) + " from " +
                             text(static_cast<uint64_t>(lock.l_start)) + (result == 0 ? "" : ": refused");
    if (briefly)
        close(file);
    return said;
}

// ---- names ----------------------------------------------------------------------------------------------------------

bool put_something(const std::string& path, uint64_t random) {
    switch (random % 8) {
        case 0:
            return mkfifo(path.c_str(), 0666) == 0;
        case 1:
            return mkdir(path.c_str(), 0777) == 0;
        case 2:
            return symlink("/dev/zero", path.c_str()) == 0;
        case 3:
            return symlink(path.c_str(), path.c_str()) == 0;
        case 4: {
            const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            if (path.size() >= sizeof address.sun_path)
                return close(file), false;
            memcpy(address.sun_path, path.c_str(), path.size());
            const bool bound = bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
            return close(file), bound;
        }
        default: {
            const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, random % 3 ? 0666 : 0);
            if (file < 0)
                return false;
            if (random % 5 == 0)
                (void)!ftruncate(file, static_cast<off_t>(sizeof(ledger::File)));
            if (random % 7 == 0)
                (void)!write(file, "x", 1);
            return close(file), true;
        }
    }
}

bool remove_something(const std::string& path) { return unlink(path.c_str()) == 0 || rmdir(path.c_str()) == 0; }

unsigned squat_made(const std::string& path, uint64_t random) {
    int last = 0;
    std::ifstream("/proc/sys/kernel/ns_last_pid") >> last;
    const std::string space = fs::read_symlink("/proc/self/ns/pid").string();
    char number[32];
    snprintf(number, sizeof number, "%llx", strtoull(space.c_str() + space.find('[') + 1, nullptr, 10));
    unsigned made = 0;
    for (int pid = last + 1; pid < last + 200; pid++)
        made += put_something(
            path + "." + text(static_cast<uint64_t>(pid)) + "-" + number + (random % 3 ? "" : ".aside"), random);
    return made;
}

std::string flood_folder(const std::string& folder, const std::string& uuid, uint64_t seed) {
    std::mt19937_64 random(seed);
    constexpr unsigned kUsersThere[] = {0, 60001, 60002, 60003, 60004, 60010};
    unsigned made = 0;
    const uint64_t count = 100 + random() % 300;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t drawn = random();
        const std::string user = text(drawn % 3 ? kUsersThere[drawn / 3 % std::size(kUsersThere)] : 61000 + i);
        const std::string ledger = user + "-" + uuid + "." + text(ledger::kVersion);
        std::string name;
        switch (drawn / 64 % 5) {
            case 0:
                name = ledger + ".ledger";
                break;
            case 1:
                // More of a victim's own would be its last ones.
                name = ledger + "-" + text(1 + random() % 64) + ".ledger";
                break;
            case 2:
                name = ledger + ".ledger." + text(random() % 32768) + "-f0000000";
                break;
            default:
                name = user + "-" + hex(random()) + ".alive";
        }
        made += put_something(folder + "/" + name, random());
    }
    return text(made) + " names that look like others'";
}

// ---- his own ledger -------------------------------------------------------------------------------------------------

std::string forge_in(const std::string& path, const std::string& folder, std::mt19937_64& random) {
    const int file = open(path.c_str(), O_RDWR | ledger::kSafely);
    struct stat info {};
    if (file < 0 || fstat(file, &info) != 0 || info.st_size < static_cast<off_t>(sizeof(ledger::File))) {
        if (file >= 0)
            close(file);
        return "nothing";
    }
    void* const memory = mmap(nullptr, sizeof(ledger::File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return "nothing";
    const std::string said = forge(*static_cast<ledger::File*>(memory), known_in(folder), random);
    munmap(memory, sizeof(ledger::File));
    return said;
}

std::string reshape_file(const std::string& path, const std::string& other, uint64_t random) {
    constexpr auto kWhole = static_cast<off_t>(sizeof(ledger::File));
    const auto resize = [&](off_t bytes) {
        return truncate(path.c_str(), bytes) == 0 ? "his ledger has " + text(static_cast<uint64_t>(bytes)) + " bytes"
                                                  : std::string("he has no ledger");
    };
    const std::string aside = path + ".new";
    const auto replace = [&](const std::string& with) {
        if (rename(aside.c_str(), path.c_str()) == 0)
            return "his ledger is replaced by " + with;
        remove_something(aside);
        return "his ledger is not replaced by " + with;
    };
    remove_something(aside);
    const uint64_t drawn = random / 16;
    switch (random % 10) {
        case 0:
            return resize(0);
        case 1:
            return resize(static_cast<off_t>(drawn % sizeof(ledger::File)));
        case 2:
            return resize(kWhole - 1);
        case 3:
            return resize(off_t{1} << 40);
        case 4:
            return resize(kWhole);
        case 5:
            return remove_something(path) ? "his ledger is removed" : "he has no ledger";
        case 6: {
            // As it is, with all that it says of the other user's processes.
            copy_without_holes(other, aside);
            return replace("a copy of another user's");
        }
        case 7:
            return link(other.c_str(), aside.c_str()) == 0 ? replace("another user's own file")
                                                           : "another user's file can't be linked";
        case 8: {
            constexpr mode_t kModes[] = {0, 0600, 0644, 0666, 04777, 0444};
            const mode_t mode = kModes[drawn % std::size(kModes)];
            return chmod(path.c_str(), mode) == 0 ? "his ledger has mode " + text(mode) : "he has no ledger";
        }
        default:
            put_something(aside, drawn);
            if (fs::is_directory(fs::symlink_status(aside)))
                remove_something(path);
            return replace("something else");
    }
}

// ---- inherited descriptors ------------------------------------------------------------------------------------------

void start_dropped(const Puppet::Wish& wish, unsigned user, uint64_t seed) {
    // The saved user is root still, as of a service that will drop its rights later.
    if (setgroups(0, nullptr) != 0 || setegid(wish.user) != 0 || setresuid(0, wish.user, 0) != 0)
        return;
    prctl(PR_SET_DUMPABLE, 1);
    Puppet::join_for_life(wish, true);
    const std::string number = text(user), drawn = text(seed);
    execl("/proc/self/exe", "model", "--dropped", number.c_str(), drawn.c_str(), nullptr);
}

int dropped_program(unsigned user, uint64_t seed) {
    if (seteuid(0) != 0)
        return 3;
    become(user);
    std::mt19937_64 random(seed);
    std::vector<int> inherited;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        const int file = std::stoi(entry.path().filename());
        if (file > 2)
            inherited.push_back(file);
    }
    std::string said = "a program that has dropped its rights has";
    for (const int file : inherited) {
        std::error_code gone;
        const std::string link = "/proc/self/fd/" + text(static_cast<uint64_t>(file));
        const fs::path target = fs::read_symlink(link, gone);
        if (gone || target.string().find("/ledgers/") == std::string::npos)
            continue;
        said += " " + target.filename().string() + ":";
        const char letters[64] = "anything";
        struct flock lock {};
        lock.l_whence = SEEK_SET;
        if (write(file, letters, sizeof letters) > 0)
            said += " written";
        if (pwrite(file, letters, sizeof letters, static_cast<off_t>(random() % 4096)) > 0)
            said += " overwritten";
        if (random() % 2 && fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
            said += " punched";
        if (ftruncate(file, static_cast<off_t>(random() % 2 * 4096)) == 0)
            said += " shortened";
        lock.l_type = F_WRLCK;
        if (fcntl(file, F_OFD_SETLK, &lock) == 0)
            said += " locked";
        lock.l_type = random() % 2 ? F_UNLCK : F_RDLCK;
        if (fcntl(file, F_SETLK, &lock) == 0)
            said += lock.l_type == F_UNLCK ? " unlocked" : " read-locked";
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            said += " flocked";
        if (fchmod(file, 0) == 0)
            said += " chmodded";
        const int again = open(link.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (again >= 0)
            said += " opened";
    }
    said += "\n";
    (void)!write(STDOUT_FILENO, said.data(), said.size());
    for (;;)
        pause();
}

}  // namespace cuslice::tests::model
