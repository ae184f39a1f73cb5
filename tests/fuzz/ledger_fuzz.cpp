// SPDX-License-Identifier: Apache-2.0
// A ledger file that anybody's process may have written anything into: pieces of it are replaced, and it is used then.
// It must not crash, hang, or write outside; and a limit that it says must hold.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "policy/ledger/ledger.h"

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
    char path[kPathBytes];
    expect(ledger_path(folder().c_str(), geteuid(), kUuid, path));
    {
        Ledger fresh;
        LedgerError failure;
        unlink(path);
        expect(fresh.open(folder().c_str(), kUuid, kCapacity, false, &failure));
        fresh.close();
    }
    // {offset, 3 bytes; length; bytes}, as often as there are some.
    const int file = open(path, O_RDWR | O_CLOEXEC);
    while (size > 4) {
        const size_t offset = (data[0] | data[1] << 8 | data[2] << 16) % sizeof(File);
        const size_t length = std::min({size_t{data[3]}, size - 4, sizeof(File) - offset});
        expect(pwrite(file, data + 4, length, static_cast<off_t>(offset)) == static_cast<ssize_t>(length));
        data += 4 + length;
        size -= 4 + length;
    }
    close(file);

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
    if (ledger->look(0, &committed, &available)) {
        expect(available <= ledger->capacity() && committed.kept <= ledger->capacity() - available);
        expect(committed.queue.position() <= kTickets && committed.queue.total() <= kTickets);
    }
    const Joined joined = ledger->join(request, 0, place, &committed, &available, &failure);
    watched = {};
    ledger->watch(AccountKind::job, "job", &watched);
    expect(joined != Joined::yes || !ledger->queued());
    ledger->leave_queue();
    if (joined != Joined::yes)
        return 0;
    const uint64_t before = place->used(), limit = place->limit();
    if (place->reserve(kBytes, 0, nullptr))
        expect(before <= limit && limit - before >= kBytes);
    place->change(-static_cast<int64_t>(kBytes));
    ledger->set_limit(AccountKind::job, "job", kBytes);
    ledger->take_back_dead();
    return 0;
}
