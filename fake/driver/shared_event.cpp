// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/shared_event.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <fstream>
#include <string>

#include "fake/books/liveness.h"
#include "fake/driver/memory_file.h"
#include "fake/driver/sharing.h"

namespace cuslice::fake {

struct SharedEvent::Page {
    uint64_t id;
    std::atomic<uint32_t> begun, reached;
    std::atomic<int32_t> recorder;           // who has begun the latest record
    std::atomic<uint64_t> recorder_started;  // field 22 of /proc/PID/stat: pids are used again
};

namespace {

constexpr uint32_t kMagic = 0x45504943;

/// Contents of this driver's CUipcEventHandle.
struct Ticket {
    uint32_t magic;
    int32_t pid, file;
    int32_t reserved;
    uint64_t id;
    unsigned char unused[40];
};
static_assert(sizeof(Ticket) == sizeof(CUipcEventHandle));

/// Numbers go round.
bool at_least(uint32_t number, uint32_t other) { return static_cast<int32_t>(number - other) >= 0; }

/// A zombie has been killed already.
bool lives(int pid, uint64_t started) {
    if (process_start_time(pid) != started)
        return false;
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), line);
    const size_t state = line.rfind(')');
    return state != std::string::npos && line.size() > state + 2 && line[state + 2] != 'Z' && line[state + 2] != 'X';
}

void futex(const std::atomic<uint32_t>& word, int what, uint32_t value, const timespec* timeout) {
    syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), what, value, timeout, nullptr, 0);
}

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::make() {
    const int file = memory_file("cuslice-fake-event");
    void* memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(Page)) == 0)
        memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        if (file >= 0)
            close(file);
        return nullptr;
    }
    auto* page = static_cast<Page*>(memory);
    page->id = new_sharing_id();
    return std::shared_ptr<SharedEvent>(new SharedEvent(page, file));
}

CUresult SharedEvent::open(const CUipcEventHandle& handle, std::shared_ptr<SharedEvent>& out) {
    Ticket ticket;
    std::memcpy(&ticket, &handle, sizeof ticket);
    if (ticket.magic != kMagic)
        return CUDA_ERROR_INVALID_HANDLE;
    // As with memory: a process can't open what it exported itself.
    if (ticket.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    const std::string path = "/proc/" + std::to_string(ticket.pid) + "/fd/" + std::to_string(ticket.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    struct stat info {};
    void* memory = MAP_FAILED;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == sizeof(Page))
        memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_INVALID_HANDLE;
    auto* page = static_cast<Page*>(memory);
    if (page->id != ticket.id) {  // the descriptor's number has been used again
        munmap(memory, sizeof(Page));
        return CUDA_ERROR_INVALID_HANDLE;
    }
    out.reset(new SharedEvent(page, -1));
    return CUDA_SUCCESS;
}

SharedEvent::~SharedEvent() {
    munmap(page_, sizeof(Page));
    if (file_ >= 0)
        close(file_);
}

bool SharedEvent::handle(CUipcEventHandle& out) const {
    if (file_ < 0)
        return false;
    Ticket ticket{};
    ticket.magic = kMagic;
    ticket.pid = getpid();
    ticket.file = file_;
    ticket.id = page_->id;
    std::memcpy(&out, &ticket, sizeof ticket);
    return true;
}

uint32_t SharedEvent::begin_record() {
    page_->recorder_started = process_start_time(getpid());
    page_->recorder = getpid();
    return page_->begun.fetch_add(1) + 1;
}

void SharedEvent::reach(uint32_t number) {
    uint32_t now = page_->reached;
    while (!at_least(now, number) && !page_->reached.compare_exchange_weak(now, number)) {
    }
    futex(page_->reached, FUTEX_WAKE, INT_MAX, nullptr);
}

uint32_t SharedEvent::latest() const { return page_->begun; }

bool SharedEvent::reached(uint32_t number) const {
    return at_least(page_->reached, number) || !lives(page_->recorder, page_->recorder_started);
}

void SharedEvent::wait(uint32_t number) const {
    constexpr timespec kMoment = {0, 10'000'000};
    for (;;) {
        const uint32_t now = page_->reached;
        if (reached(number))
            return;
        futex(page_->reached, FUTEX_WAIT, now, &kMoment);
    }
}

}  // namespace cuslice::fake
