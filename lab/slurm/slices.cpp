// SPDX-License-Identifier: Apache-2.0
// Reads how much of the nodes' fake GPUs the jobs of storm.py hold, from the fake driver's accounting, and what they
// leave over in the ledgers, from the files themselves. Nothing of cuslice is asked.
//
//   slices watch SHM...   looks again and again until its input ends; then one line of JSON says what it saw
//   slices left SHM...    one line of JSON for each file: what is in it
//
// SHM is a node's /dev/shm. A job's processes have in their environment what it may hold of each GPU, in bytes, as
// STORM_SLICE.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fake/books/books.h"
#include "fake/books/liveness.h"
#include "tests/policy/ledger/left_over.h"

using cuslice::fake::Books;
using cuslice::fake::Holder;

namespace {

/// Job of a process and its slice in bytes, from the process's environment.
struct Owner {
    std::string job;  // empty: of none
    uint64_t slice = 0;
};

/// Nothing where it can't be read: a process may end between two reads, for which streams throw.
std::optional<std::string> read_file(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return {};
    std::string text;
    char part[4096];
    ssize_t size = 0;
    while ((size = read(file, part, sizeof part)) > 0)
        text.append(part, static_cast<size_t>(size));
    close(file);
    return size == 0 ? std::optional(text) : std::nullopt;
}

/// Nothing of a process that has ended, or is about to.
std::optional<Owner> owner_of(int pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (!text || text->empty())
        return {};
    Owner owner;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line, '\0');) {
        if (line.starts_with("SLURM_JOB_ID="))
            owner.job = line.substr(line.find('=') + 1);
        if (line.starts_with("STORM_SLICE="))
            owner.slice = std::strtoull(line.c_str() + line.find('=') + 1, nullptr, 10);
    }
    if (!owner.job.empty() && owner.slice == 0)
        return {};  // it is just being replaced
    return owner;
}

/// True if the process is gone, or the kernel has begun to end it (PF_EXITING) and so may have dropped a part of what
/// it had.
bool is_ending(int pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
    if (!text || text->rfind(')') == std::string::npos)
        return true;
    std::istringstream fields(text->substr(text->rfind(')') + 1));
    std::string state;
    uint64_t number = 0, flags = 0;
    fields >> state >> number >> number >> number >> number >> number >> flags;
    return !fields || state == "Z" || state == "X" || (flags & 4) != 0;
}

struct Held {
    int pid = 0;
    uint64_t bytes = 0;
    bool contexts_alone = false;

    bool operator==(const Held&) const = default;
};

/// Live processes, and the bytes that each of them holds.
std::vector<Held> held(Books& books) {
    std::vector<Held> found;
    for (const Holder& holder : books.holders())
        if (holder.live && holder.pid_here != 0)
            found.push_back({holder.pid_here, holder.used, holder.used == holder.context_bytes});
    return found;
}

struct Watch {
    unsigned long looks = 0;                  // at a GPU of which somebody held anything
    unsigned long unsettled = 0;              // of those, where somebody took, gave back or ended meanwhile
    unsigned long strangers = 0;              // processes of no job that held anything
    unsigned most_jobs = 0;                   // on one GPU
    double fullest = 0;                       // the most that a job held, as a part of its slice
    std::map<std::string, std::string> over;  // by job and GPU

    /// A figure counts if it was the same before and after, of all of them: then they held that at one time. Who has a
    /// context alone may just be making it: how large a process's first one is shows afterwards, and if that is too
    /// much for the slice it is ended again.
    void look(const std::string& gpu, Books& books) {
        const auto before = held(books);
        if (before.empty())
            return;
        std::map<std::string, std::pair<uint64_t, uint64_t>> jobs;  // what they hold, and may hold
        std::map<std::string, std::string> members;
        unsigned unknown = 0;
        bool settled = true;
        for (const auto& [pid, bytes, contexts_alone] : before) {
            const std::optional<Owner> owner = owner_of(pid);
            settled = settled && owner;
            if (owner && owner->job.empty())
                unknown += bytes != 0;
            if (!owner || owner->job.empty())
                continue;
            if (!contexts_alone)
                jobs[owner->job].first += bytes;
            jobs[owner->job].second = owner->slice;
            members[owner->job] += ", pid " + std::to_string(pid) + " " + std::to_string(bytes);
        }
        settled = settled && held(books) == before;
        for (const Held& one : before)
            settled = settled && !is_ending(one.pid);
        looks++;
        unsettled += !settled;
        if (!settled)
            return;
        strangers += unknown;
        most_jobs = std::max(most_jobs, static_cast<unsigned>(jobs.size()));
        for (const auto& [job, sums] : jobs) {
            fullest = std::max(fullest, static_cast<double>(sums.first) / static_cast<double>(sums.second));
            if (sums.first > sums.second)
                over[job + gpu] = "job " + job + " held " + std::to_string(sums.first) + " of " +
                                  std::to_string(sums.second) + " bytes on " + gpu + members[job];
        }
    }
    void print() const {
        std::printf("{\"looks\": %lu, \"unsettled\": %lu, \"strangers\": %lu, \"most_jobs\": %u, \"fullest\": %.6f, ",
                    looks, unsettled, strangers, most_jobs, fullest);
        std::printf("\"over\": [");
        const char* comma = "";
        for (const auto& [key, text] : over)
            std::printf("%s\"%s\"", std::exchange(comma, ", "), text.c_str());
        std::printf("]}\n");
    }
};

std::vector<std::filesystem::path> files(const std::filesystem::path& folder, const char* start, const char* end) {
    std::vector<std::filesystem::path> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string name = entry.path().filename();
        if (name.starts_with(start) && name.ends_with(end) && !name.ends_with(".lock"))
            found.push_back(entry.path());
    }
    return found;
}

void watch(const std::vector<std::string>& nodes) {
    std::map<std::string, Books> open;  // by their files' names
    Watch watch;
    for (;;) {
        for (const std::string& node : nodes)
            for (const auto& path : files(node + "/cuslice-fake-0", "GPU-", ""))
                if (std::string error; !open.count(path) && !open[path].open_existing(path, error)) {
                    open.erase(path);  // it is being made
                }
        for (auto& [path, books] : open)
            watch.look(path, books);
        pollfd input = {STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, 3) != 0)
            break;
    }
    watch.print();
}

int print_left(const std::vector<std::string>& nodes) {
    using cuslice::ledger::File;
    for (const std::string& node : nodes) {
        for (const auto& path : files(node + "/cuslice", "", ".ledger")) {
            const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
            void* const memory = mmap(nullptr, sizeof(File), PROT_READ, MAP_SHARED, descriptor, 0);
            close(descriptor);
            if (memory == MAP_FAILED)
                return 1;
            const auto left = cuslice::tests::left_over(*static_cast<const File*>(memory));
            std::printf(
                "{\"file\": \"%s\", \"nothing\": %s, \"bytes\": %llu, \"reserved\": %llu, \"members\": %u, "
                "\"tickets\": %u, \"stripes\": %u, \"accounts\": %u}\n",
                path.c_str(), left.nothing() ? "true" : "false", static_cast<unsigned long long>(left.bytes),
                static_cast<unsigned long long>(left.reserved), left.members, left.tickets, left.stripes,
                left.accounts);
            munmap(memory, sizeof(File));
        }
        for (const auto& path : files(node + "/cuslice-fake-0", "GPU-", "")) {
            Books books;
            std::string error;
            if (!books.open_existing(path, error))
                return 1;
            uint64_t bytes = 0;
            const auto now = held(books);
            for (const Held& one : now)
                bytes += one.bytes;
            std::printf("{\"file\": \"%s\", \"nothing\": %s, \"bytes\": %llu, \"members\": %zu}\n", path.c_str(),
                        now.empty() ? "true" : "false", static_cast<unsigned long long>(bytes), now.size());
        }
    }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const std::vector<std::string> nodes(words + std::min(count, 2), words + count);
    if (count > 2 && !std::strcmp(words[1], "left"))
        return print_left(nodes);
    if (count < 3 || std::strcmp(words[1], "watch") != 0)
        return 64;
    watch(nodes);
    return 0;
}
