// SPDX-License-Identifier: Apache-2.0
// A ledger file into which another user may have written anything, as `cuslice ps` shows it: as a table, as JSON and to
// Prometheus. Whatever the names are, they end no line and no value early.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/ledger/holders.h"
#include "cli/ledger/prometheus.h"
#include "cli/text/json.h"
#include "policy/ledger/ledger.h"

using namespace cuslice;

namespace {

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

// A ledger with one member, this process.
class OwnLedger {
  public:
    OwnLedger() {
        char path[ledger::kPathBytes];
        ledger::LedgerError failure;
        ledger::Request request;
        uint64_t available = 0;
        request.name = "job";
        request.limit = request.reserved = uint64_t{1} << 30;
        expect(ledger_.open(folder().c_str(), "GPU-fuzz", uint64_t{16} << 30, false, &failure));
        expect(ledger_.join(request, 0, &place_, &committed_, &available, &failure) == ledger::Joined::yes);
        expect(ledger::ledger_path(folder().c_str(), geteuid(), "GPU-fuzz", path));
        file_ = open(path, O_RDWR | O_CLOEXEC);
        expect(pread(file_, whole_.data(), whole_.size(), 0) == static_cast<ssize_t>(whole_.size()));
    }

    // Pieces of the input over it: {offset, 3 bytes; length; bytes}, as often as there are some.
    void overwrite(const uint8_t* data, size_t size) {
        std::vector<char> bytes = whole_;
        while (size > 4) {
            const size_t offset = (data[0] | data[1] << 8 | data[2] << 16) % bytes.size();
            const size_t length = std::min({size_t{data[3]}, size - 4, bytes.size() - offset});
            std::copy_n(data + 4, length, bytes.begin() + static_cast<ptrdiff_t>(offset));
            data += 4 + length;
            size -= 4 + length;
        }
        expect(pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    }

  private:
    ledger::Ledger ledger_;
    ledger::Membership place_;
    ledger::Committed committed_;
    std::vector<char> whole_ = std::vector<char>(sizeof(ledger::File));
    int file_ = -1;
};

// A line of the text format: a comment, or a name, labels whose quotes are closed, and a number.
void check_line(const std::string& line, std::set<std::string>& series) {
    if (line.empty() || line[0] == '#')
        return;
    size_t at = line.find_first_of("{ ");
    expect(at != std::string::npos && at > 0);
    if (line[at] == '{') {
        bool quoted = false;
        for (at++; at < line.size() && (quoted || line[at] != '}'); at++) {
            if (line[at] == '"')
                quoted = !quoted;
            if (line[at] == '\\')
                at++;
        }
        expect(at + 1 < line.size() && line[at + 1] == ' ');
        at++;
    }
    expect(series.insert(line.substr(0, at)).second);
    char* end = nullptr;
    std::strtod(line.c_str() + at, &end);
    expect(*end == '\0');
}

void show(const cli::Holder& holder) {
    for (const cli::HolderColumn& column : cli::holder_columns()) {
        if (column.kind.cell != nullptr)
            for (const cli::Form form : {cli::Form::line, cli::Form::whole, cli::Form::tight})
                column.kind.cell(holder, form);
        if (column.kind.write != nullptr)
            cli::json_text(column.kind.write(holder));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static auto& own = *new OwnLedger;
    own.overwrite(data, size);
    const cli::Holders found = cli::read_holders(folder());
    std::istringstream text(cli::prometheus_text(found));
    std::set<std::string> series;
    for (std::string line; std::getline(text, line);)
        check_line(line, series);
    for (const cli::Holder& holder : found.holding)
        show(holder);
    std::vector<std::string> failures;
    for (const cli::JobPeak& peak : cli::read_peaks(folder(), "job", failures))
        cli::json_text(cli::json_of(peak));
    return 0;
}
