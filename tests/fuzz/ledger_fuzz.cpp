// SPDX-License-Identifier: Apache-2.0
// A ledger file that anybody's process may write anything into: pieces of it are replaced, and it is used then.
// It must not crash, hang, or write outside; and a limit that it says must hold.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "policy/ledger/ledger.h"
#include "tests/fuzz/ledger_pieces.h"

using namespace cuslice::ledger;

namespace {

constexpr const char* kUuid = "GPU-fuzz";
constexpr uint64_t kCapacity = 16ull << 30, kBytes = 1 << 20;

void expect(bool holds) {
    if (!holds)
        std::abort();
}

const std::string& folder() {
    static const std::string made = [] {
        char name[] = "/dev/shm/cuslice-fuzz-XXXXXX";
        const std::string path = mkdtemp(name);
        static std::string at_exit = path;
        std::atexit([] { std::system(("rm -rf " + at_exit).c_str()); });
        return path;
    }();
    return made;
}

// A ledger as it is made. Once: whoever makes one looks at all processes of the machine.
struct NewFile {
    char path[kPathBytes];
    std::vector<char> bytes = std::vector<char>(sizeof(File));
};

const NewFile& new_file() {
    static const NewFile made = [] {
        NewFile file;
        Ledger fresh;
        LedgerError failure;
        expect(ledger_path(folder().c_str(), geteuid(), kUuid, file.path));
        expect(fresh.open(folder().c_str(), kUuid, kCapacity, false, &failure));
        fresh.close();
        const int descriptor = open(file.path, O_RDONLY | O_CLOEXEC);
        expect(pread(descriptor, file.bytes.data(), sizeof(File), 0) == static_cast<ssize_t>(sizeof(File)));
        close(descriptor);
        return file;
    }();
    return made;
}

void write_pieces(const char* path, const uint8_t* data, size_t size) {
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cuslice::each_piece(data, size, [&](size_t at, const uint8_t* from, size_t length) {
        expect(pwrite(file, from, length, static_cast<off_t>(at)) == static_cast<ssize_t>(length));
    });
    close(file);
}

void write_new(const NewFile& made) {
    const int file = open(made.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    expect(pwrite(file, made.bytes.data(), sizeof(File), 0) == static_cast<ssize_t>(sizeof(File)));
    close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // Before the file is removed: what a member of it holds would be carried over to the next one.
    static Ledger* ledger = nullptr;
    static Membership* place = nullptr;
    if (ledger)
        ledger->close();
    delete ledger;
    delete place;
    ledger = nullptr;
    place = nullptr;
    const NewFile& made = new_file();
    write_new(made);
    write_pieces(made.path, data, size);

    ledger = new Ledger;
    place = new Membership;
    LedgerError failure;
    if (!ledger->open(folder().c_str(), kUuid, kCapacity, false, &failure))
        return 0;
    static Committed committed;
    static Watched watched;
    uint64_t available = 0;
    Request request;
    request.name = "job";
    request.limit = request.reserved = 4 * kBytes;
    // A waiting process has a place in the queue, whatever is in the other tickets, and is offered no more than is
    // free.
    ledger->queue_up(request.reserved, "fuzz");
    const uint64_t in_use = size ? data[0] * (kCapacity >> 7) : 0;
    if (ledger->look(in_use, &committed, &available)) {
        expect(available <= ledger->capacity() && committed.kept <= ledger->capacity() - available);
        expect(committed.queue.position() <= kTickets && committed.queue.total() <= kTickets);
    }
    const Joined joined = ledger->join(request, in_use, place, &committed, &available, &failure);
    watched = {};
    ledger->watch(AccountKind::job, "job", &watched);
    expect(joined != Joined::yes || !ledger->queued());
    ledger->leave_queue();
    if (joined != Joined::yes)
        return 0;
    write_pieces(made.path, data, size);  // also while it is in use
    const uint64_t before = place->used(), limit = place->limit();
    if (place->reserve(kBytes, 0, nullptr))
        expect(before <= limit && limit - before >= kBytes);
    place->change(-static_cast<int64_t>(kBytes));
    ledger->set_limit(AccountKind::job, "job", kBytes);
    ledger->take_back_dead();
    return 0;
}
