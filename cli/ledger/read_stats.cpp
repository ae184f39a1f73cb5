// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/read_stats.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/text/command_line.h"
#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"

namespace cuslice::cli {
namespace {

constexpr std::string_view kModes[] = {"direct", "growth", "prealloc"};

std::string proc(int pid, const char* what) { return "/proc/" + std::to_string(pid) + "/" + what; }

// The process as it calls itself: in a container its pid is another one there.
stats::Name name_of(int pid, uint64_t start_time) {
    stats::Name name{ledger::read_pid_namespace(), pid, start_time};
    char link[64];  // pid:[4026531836]
    const ssize_t length = ::readlink(proc(pid, "ns/pid").c_str(), link, sizeof link - 1);
    if (length > 5) {
        link[length] = '\0';
        name.pid_namespace = std::strtoull(link + 5, nullptr, 10);
    }
    std::ifstream status(proc(pid, "status"));
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("NSpid:"))
            continue;
        std::istringstream pids(line.substr(6));
        for (int inner = 0; pids >> inner;)
            name.pid = inner;  // the innermost is last
    }
    return name;
}

// A file that its process does not map is one of an earlier program of that process.
bool maps(int pid, const std::string& file_name, uint64_t inode) {
    std::ifstream maps(proc(pid, "maps"));
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::string range, access, offset, device, path;
        uint64_t mapped = 0;
        words >> range >> access >> offset >> device >> std::dec >> mapped;
        if (mapped == inode && line.ends_with("/" + file_name))
            return true;
    }
    return false;
}

// Whole, of this version, and its user's own.
bool open_file(const std::string& path, unsigned user, int& file, uint64_t& inode) {
    file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat info {};
    uint32_t header[4]{};  // magic, version, size
    const bool good = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == user &&
                      info.st_size == static_cast<off_t>(sizeof(stats::File)) &&
                      ::pread(file, header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    uint64_t magic = 0;
    std::memcpy(&magic, header, sizeof magic);
    inode = info.st_ino;
    if (good && magic == stats::kMagic && header[2] == stats::kVersion && header[3] == sizeof(stats::File))
        return true;
    ::close(file);
    file = -1;
    errno = 0;
    return false;
}

uint64_t sequence_at(int file, off_t place) {
    uint64_t sequence = 0;
    return ::pread(file, &sequence, sizeof sequence, place) == sizeof sequence ? sequence : 0;
}

// False if nothing has been written there, or all the time something is. `patience`: how often to look once more, for
// all GPUs of the file together, as whoever writes it may leave all of them in the middle of a change.
bool read_gpu(int file, unsigned ordinal, unsigned& patience, GpuStats& into) {
    // As bytes: what is in it was an atomic of its writer's.
    struct Bytes {
        alignas(stats::Gpu) char bytes[sizeof(stats::Gpu)];
    };
    const auto raw = std::make_unique<Bytes>();
    const auto place = static_cast<off_t>(offsetof(stats::File, gpus) + ordinal * sizeof(stats::Gpu));
    for (;;) {
        const uint64_t before = sequence_at(file, place);
        if (before == 0)
            return false;
        const bool whole =
            ::pread(file, raw->bytes, sizeof raw->bytes, place) == static_cast<ssize_t>(sizeof raw->bytes);
        if (!whole || before % 2 != 0 || sequence_at(file, place) != before) {
            if (patience == 0)
                return false;
            patience--;
            ::usleep(100);
            continue;
        }
        const auto* gpu = reinterpret_cast<const stats::Gpu*>(raw->bytes);
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        const auto milliseconds = static_cast<uint64_t>(now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
        into.uuid.assign(gpu->uuid, ::strnlen(gpu->uuid, sizeof gpu->uuid));
        into.name.assign(gpu->name, ::strnlen(gpu->name, sizeof gpu->name));
        into.mode = gpu->mode;
        into.contexts = gpu->contexts;
        into.milliseconds = milliseconds > gpu->written ? milliseconds - gpu->written : 0;
        into.statistics = gpu->statistics;
        return true;
    }
}

}  // namespace

ProcessStats read_stats(const std::string& folder, int pid) {
    ProcessStats answer;
    const std::string who = "process " + std::to_string(pid);
    struct stat owner {};
    const uint64_t start_time = ledger::start_time_of(pid);
    if (start_time == 0 || ::stat(proc(pid, "").c_str(), &owner) != 0) {
        answer.failure = "there is no " + who + " here";
        return answer;
    }
    if (::geteuid() != 0 && owner.st_uid != ::geteuid()) {
        answer.failure = who + " is another user's";
        return answer;
    }
    std::getline(std::ifstream(proc(pid, "comm")), answer.command);
    answer.command_line = read_command_line({pid, ledger::own_pid_namespace(), start_time}, owner.st_uid);
    stats::NameText name;
    stats::write_name(name_of(pid, start_time), name);
    int file = -1;
    uint64_t inode = 0;
    errno = 0;
    if (!open_file(folder + "/" + name, owner.st_uid, file, inode) || !maps(pid, name, inode)) {
        const bool refused = file < 0 && (errno == EACCES || errno == EPERM);
        if (file >= 0)
            ::close(file);
        if (refused) {
            answer.failure =
                "the figures of " + who + " can't be read: " + folder + "/" + name + ": " + strerror(EACCES);
            return answer;
        }
        answer.failure = who + " (" + answer.command +
                         ") keeps no cache: its allocator is direct, or it has made no context yet (--dir " + folder +
                         ")";
        return answer;
    }
    unsigned patience = 1000;
    for (unsigned ordinal = 0; ordinal < stats::kGpus; ordinal++) {
        GpuStats gpu;
        if (read_gpu(file, ordinal, patience, gpu))
            answer.gpus.push_back(gpu);
    }
    ::close(file);
    return answer;
}

uint32_t mode_called(std::string_view name) {
    return static_cast<uint32_t>(std::find(std::begin(kModes), std::end(kModes), name) - std::begin(kModes));
}

std::string mode_of(const GpuStats& gpu) { return gpu.mode < std::size(kModes) ? std::string(kModes[gpu.mode]) : "?"; }

Json json_of(const GpuStats& gpu) {
    const Statistics& s = gpu.statistics;
    Json one = {{"gpu", gpu.uuid}, {"name", gpu.name}, {"allocator", mode_of(gpu)}, {"contexts", gpu.contexts}};
    for (const NamedTally& row : kTallies) {
        const Tally& tally = s.*row.tally;
        one[row.name] = {
            {"current", tally.current}, {"peak", tally.peak}, {"allocated", tally.allocated}, {"freed", tally.freed}};
    }
    one["allocations"] = s.allocations;
    one["frees"] = s.frees;
    one["segments"] = s.segments;
    one["retries"] = s.retries;
    one["ooms"] = s.ooms;
    one["syncs"] = s.syncs;
    one["largest_free"] = s.largest_free;
    one["own_memory"] = s.own_memory;
    one["seconds_ago"] = static_cast<double>(gpu.milliseconds) / 1000;
    return one;
}

}  // namespace cuslice::cli
