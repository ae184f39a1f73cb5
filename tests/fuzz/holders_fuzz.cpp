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
#include "tests/fuzz/ledger_pieces.h"

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

// A ledger with one member, this process. For root, who can make one, there is the same of another user's.
class Ledgers {
  public:
    Ledgers() {
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
        if (geteuid() != 0)
            return;
        constexpr unsigned kOther = 65534;
        expect(ledger::ledger_path(folder().c_str(), kOther, "GPU-fuzz", path));
        others_ = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        expect(fchown(others_, kOther, kOther) == 0);
    }

    // Pieces of the input over it.
    void overwrite(const uint8_t* data, size_t size) {
        std::vector<char> bytes = whole_;
        each_piece(data, size, [&](size_t place, const uint8_t* from, size_t length) {
            std::copy_n(from, length, bytes.begin() + static_cast<ptrdiff_t>(place));
        });
        for (const int file : {file_, others_})
            expect(file < 0 || pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    }

  private:
    ledger::Ledger ledger_;
    ledger::Membership place_;
    ledger::Committed committed_;
    std::vector<char> whole_ = std::vector<char>(sizeof(ledger::File));
    int file_ = -1, others_ = -1;
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
    expect(holder.name.size() <= sizeof ledger::Account::name);
    expect(holder.command.size() <= sizeof ledger::Member::command);
    expect(holder.used <= INT64_MAX);
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
    static auto& ledgers = *new Ledgers;
    ledgers.overwrite(data, size);
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
