// SPDX-License-Identifier: Apache-2.0
#include "fake/time/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "fake/time/figures.h"
#include "fake/time/futex.h"

namespace cuslice::fake {
namespace {

/// All of it has room in the file system, unlike the rings behind it.
constexpr size_t kMapped = offsetof(TimeFile, rings);
constexpr Time kPatience = 200'000'000;  // for a timekeeper that is stopped, or has no processor
constexpr uint32_t kComplete = 2;        // the claim of a GPU that can be read

}  // namespace

TimeReader::~TimeReader() { unmap(); }

bool TimeReader::refresh(const std::string& folder) {
    const std::string path = folder + "/time";
    if (!is_current(path)) {
        unmap();
        if (!map(path))
            return false;
    }
    std::string error;
    if (lock_.open_lock(folder, error) && lock_.keeper_lives())
        ask();
    return true;
}

bool TimeReader::is_current(const std::string& path) const {
    struct stat info {};
    return file_ != nullptr && stat(path.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
}

bool TimeReader::map(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    struct stat info {};
    const bool whole = fstat(file, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(TimeFile));
    void* const memory = whole ? mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (memory == MAP_FAILED)
        return false;
    file_ = static_cast<TimeFile*>(memory);
    device_ = info.st_dev;
    inode_ = info.st_ino;
    if (file_->header.magic == kTimeMagic && file_->header.version == kTimeVersion)
        return true;
    unmap();
    return false;
}

void TimeReader::unmap() {
    if (file_ != nullptr)
        munmap(file_, kMapped);
    file_ = nullptr;
}

void TimeReader::ask() const {
    TimeHeader& header = file_->header;
    const uint32_t asked = ++header.figures_asked;
    ring(header);
    const Time end = monotonic_time() + kPatience;
    for (Time now = monotonic_time(); now < end; now = monotonic_time()) {
        const uint32_t told = header.figures_told;
        // Both numbers begin again at 0 one day.
        if (static_cast<int32_t>(told - asked) >= 0)
            return;
        futex_wait(header.figures_told, told, end - now);
    }
}

Time TimeReader::now() const { return file_->header.is_virtual != 0 ? file_->header.now.load() : monotonic_time(); }

uint32_t TimeReader::gpu_of(const std::string& uuid) const {
    const auto* const found = std::ranges::find_if(
        file_->gpus, [&](const TimedGpu& gpu) { return gpu.claim == kComplete && uuid == gpu.uuid; });
    return static_cast<uint32_t>(found - file_->gpus);
}

template <typename F>
void TimeReader::each_context(const std::string& uuid, int pid, F&& f) const {
    const uint32_t gpu = gpu_of(uuid);
    for (const TimedContext& context : file_->contexts) {
        const bool was_used = context.state != TimeState::unused;
        if (was_used && context.gpu == gpu && context.pid == pid)
            f(context);
    }
}

BusyTimes TimeReader::busy_within(const std::string& uuid, Time length) const {
    BusyTimes busy{};
    const uint32_t gpu = gpu_of(uuid);
    for (size_t engine = 0; gpu != kTimeGpus && engine < kEngines; engine++)
        busy[engine] = fake::busy_within(file_->gpus[gpu].busy[engine], now(), length);
    return busy;
}

BusyTimes TimeReader::busy_within(const std::string& uuid, int pid, Time length) const {
    BusyTimes busy{};
    each_context(uuid, pid, [&](const TimedContext& context) {
        for (size_t engine = 0; engine < kEngines; engine++)
            busy[engine] += fake::busy_within(context.spans[engine], now(), length);
    });
    return busy;
}

std::optional<BusyTimes> TimeReader::total(const std::string& uuid, int pid) const {
    std::optional<BusyTimes> busy;
    each_context(uuid, pid, [&](const TimedContext& context) {
        if (!busy)
            busy.emplace();
        for (size_t engine = 0; engine < kEngines; engine++)
            (*busy)[engine] += context.busy[engine];
    });
    return busy;
}

std::vector<Turn> TimeReader::turns() const {
    std::vector<Turn> turns;
    const uint64_t written = file_->header.turns;
    const uint64_t first = written - std::min<uint64_t>(written, kTimeTurns);
    for (uint64_t number = first; number < written; number++) {
        const TimedTurn turn = file_->turn[number % kTimeTurns];
        turns.push_back({file_->gpus[turn.gpu].uuid, turn.pid, static_cast<Engine>(turn.engine), turn.begin, turn.end});
    }
    // The timekeeper may have written over the first ones meanwhile, and be at one more.
    const uint64_t later = file_->header.turns + 1;
    const uint64_t kept = later - std::min<uint64_t>(later, kTimeTurns);
    const uint64_t lost = std::min<uint64_t>(kept - std::min(kept, first), turns.size());
    turns.erase(turns.begin(), turns.begin() + static_cast<ptrdiff_t>(lost));
    return turns;
}

}  // namespace cuslice::fake
