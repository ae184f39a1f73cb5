// SPDX-License-Identifier: Apache-2.0
// watch [--json] -- program args…   runs a program and tells what the fake driver's books say of it and its children
// watch [--json] --list             tells who holds what on every fake GPU
// watch [--json] --all              the same, with those that have ended, as far as the books still have them
// watch --words                     prints the functions and results that a failure on demand can name, as JSON
// watch --machine GPUS              prints the GPUs that CUSLICE_FAKE=GPUS describes, as JSON
//
// It reads the books alone and goes through nothing of cuslice: what it says is what was really taken. The program's
// exit status is passed on (126: it could not be started, 127: it was not found, 128 + n: ended by signal n).

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "fake/books/books.h"
#include "fake/books/vocabulary.h"
#include "fake/units.h"

using namespace cuslice::fake;

namespace {

struct Row {
    std::string uuid, name;
    uint64_t capacity = 0;
    int index = 0;
    Holder holder;
};

/// Everybody in every book of the folder, in the order of GPU and process.
std::vector<Row> read_all() {
    std::vector<Row> rows;
    const std::string folder = books_folder();
    DIR* dir = opendir(folder.c_str());
    if (dir == nullptr)
        return rows;
    while (const dirent* entry = readdir(dir)) {
        const std::string file = entry->d_name;
        if (!file.starts_with("GPU-") || file.ends_with(".lock"))
            continue;
        Books books;
        std::string error;
        if (!books.open_existing(folder + "/" + file, error)) {
            std::fprintf(stderr, "watch: %s\n", error.c_str());
            continue;
        }
        for (const Holder& holder : books.holders()) {
            rows.push_back(
                {books.header().uuid, books.header().name, books.header().capacity, books.header().index, holder});
        }
    }
    closedir(dir);
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return std::tie(a.index, a.uuid, a.holder.order, a.holder.pid) <
               std::tie(b.index, b.uuid, b.holder.order, b.holder.pid);
    });
    return rows;
}

double mib(uint64_t bytes) { return static_cast<double>(bytes) / kMiB; }

void print(const std::vector<Row>& rows, bool json) {
    if (json) {
        std::printf("[");
        for (size_t i = 0; i < rows.size(); i++) {
            const Row& row = rows[i];
            std::printf("%s\n  {\"gpu\": %d, \"uuid\": \"%s\", \"name\": %s, \"capacity\": %" PRIu64
                        ", \"pid\": %d, \"live\": %s, \"peak\": %" PRIu64 ", \"used\": %" PRIu64
                        ", \"unlisted\": %" PRIu64 ", \"context\": %" PRIu64 ", \"modules\": %" PRIu64
                        ", \"contexts\": %u}",
                        i == 0 ? "" : ",", row.index, row.uuid.c_str(), quoted(row.name).c_str(), row.capacity,
                        row.holder.pid, row.holder.live ? "true" : "false", row.holder.peak, row.holder.used,
                        row.holder.unlisted, row.holder.context_bytes, row.holder.module_bytes, row.holder.contexts);
        }
        std::printf("%s]\n", rows.empty() ? "" : "\n");
        return;
    }
    for (const Row& row : rows) {
        std::printf("GPU %d %s (%.0f MiB): pid %d peak %.2f MiB, %s %.2f MiB, contexts %.2f MiB, modules %.2f MiB",
                    row.index, row.name.c_str(), mib(row.capacity), row.holder.pid, mib(row.holder.peak),
                    row.holder.live ? "now" : "at exit", mib(row.holder.used), mib(row.holder.context_bytes),
                    mib(row.holder.module_bytes));
        if (row.holder.unlisted != 0)
            std::printf(", unlisted %.2f MiB", mib(row.holder.unlisted));
        std::printf("\n");
    }
}

/// Runs the program to its end.
int run(char** command, int& child) {
    child = fork();
    if (child < 0) {
        std::fprintf(stderr, "watch: can't start a process: %s\n", std::strerror(errno));
        return 126;
    }
    if (child == 0) {
        execvp(command[0], command);
        const bool missing = errno == ENOENT;
        std::fprintf(stderr, "watch: can't run %s: %s\n", command[0], std::strerror(errno));
        _exit(missing ? 127 : 126);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// True if the holder is the program or one of its descendants.
bool belongs(const Holder& holder, int program) {
    return holder.pid == program ||
           std::find(holder.ancestors.begin(), holder.ancestors.end(), program) != holder.ancestors.end();
}

int usage() {
    std::fprintf(stderr,
                 "usage: watch [--json] -- program args…\n       watch [--json] --list|--all\n"
                 "       watch --words\n       watch --machine GPUS\n");
    return 64;
}

int describe(const char* machine) {
    std::string description, error;
    if (!describe_machine(machine, description, error)) {
        std::fprintf(stderr, "%s\n", error.c_str());
        return 78;
    }
    std::fputs(description.c_str(), stdout);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    bool json = false, list = false, all = false;
    int at = 1;
    if (argc == 2 && std::strcmp(argv[1], "--words") == 0)
        return std::fputs(vocabulary().c_str(), stdout) < 0;
    if (argc == 3 && std::strcmp(argv[1], "--machine") == 0)
        return describe(argv[2]);
    for (; at < argc && std::strcmp(argv[at], "--") != 0; at++) {
        if (std::strcmp(argv[at], "--json") == 0) {
            json = true;
        } else if (std::strcmp(argv[at], "--list") == 0) {
            list = true;
        } else if (std::strcmp(argv[at], "--all") == 0) {
            list = all = true;
        } else {
            return usage();
        }
    }
    std::vector<Row> rows;
    if (list) {
        if (at < argc)
            return usage();
        for (const Row& row : read_all()) {
            if (all || row.holder.live)
                rows.push_back(row);
        }
        print(rows, json);
        return 0;
    }
    if (at + 1 >= argc)
        return usage();

    // A process number may be used again: what ended before the program started is not its own.
    std::map<std::string, uint64_t> last_end;
    for (const Row& row : read_all())
        last_end[row.uuid] = std::max(last_end[row.uuid], row.holder.order);
    int program = 0;
    const int status = run(argv + at + 1, program);
    for (const Row& row : read_all()) {
        if (belongs(row.holder, program) && (row.holder.live || row.holder.order > last_end[row.uuid]))
            rows.push_back(row);
    }
    print(rows, json);
    std::fflush(stdout);
    return status;
}
