// SPDX-License-Identifier: Apache-2.0
// watch [--json] -- program args…   runs a program and tells what the fake driver's books say of it and its children
// watch [--json] --list             tells who holds what on every fake GPU
// watch [--json] --all              the same, with those that have ended, as far as the books still have them
// watch --turns                     prints which process had which engine of a GPU from when to when, as CSV
// watch --words                     prints the functions and results that a failure on demand can name, as JSON
// watch --machine GPUS              prints the GPUs that CUSLICE_FAKE=GPUS describes, as JSON
//
// It reads the books and the file of time alone and goes through nothing of cuslice: what it says is what was really
// taken. The program's exit status is passed on (126: it could not be started, 127: it was not found, 128 + n: ended by
// signal n).

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fake/books/books.h"
#include "fake/watch/print.h"
#include "fake/watch/rows.h"
#include "fake/watch/vocabulary.h"

using namespace cuslice::fake;

namespace {

void print(const std::vector<Row>& rows, bool json) { json ? print_json(rows) : print_lines(rows); }

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
                 "       watch --turns\n       watch --words\n       watch --machine GPUS\n");
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
    if (argc == 2 && std::strcmp(argv[1], "--turns") == 0) {
        print_turns(read_turns(books_folder()));
        return 0;
    }
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
        for (const Row& row : read_rows(books_folder())) {
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
    for (const Row& row : read_rows(books_folder()))
        last_end[row.uuid] = std::max(last_end[row.uuid], row.holder.order);
    int program = 0;
    const int status = run(argv + at + 1, program);
    for (const Row& row : read_rows(books_folder())) {
        if (belongs(row.holder, program) && (row.holder.live || row.holder.order > last_end[row.uuid]))
            rows.push_back(row);
    }
    print(rows, json);
    std::fflush(stdout);
    return status;
}
