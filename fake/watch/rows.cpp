// SPDX-License-Identifier: Apache-2.0
#include "fake/watch/rows.h"

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

namespace cuslice::fake {
namespace {

/// The paths of the folder's books.
std::vector<std::string> book_paths(const std::string& folder) {
    std::vector<std::string> paths;
    DIR* const dir = opendir(folder.c_str());
    if (dir == nullptr)
        return paths;
    while (const dirent* entry = readdir(dir)) {
        const std::string file = entry->d_name;
        if (file.starts_with("GPU-") && !file.ends_with(".lock"))
            paths.push_back(folder + "/" + file);
    }
    closedir(dir);
    return paths;
}

/// Calls f(books) for each GPU.
template <typename F>
void each_book(const std::string& folder, F&& f) {
    for (const std::string& path : book_paths(folder)) {
        Books books;
        std::string error;
        if (books.open_existing(path, error))
            f(books);
        else
            std::fprintf(stderr, "watch: %s\n", error.c_str());
    }
}

}  // namespace

std::vector<Row> read_rows(const std::string& folder) {
    TimeReader time;
    const bool timed = time.refresh(folder);
    std::vector<Row> rows;
    each_book(folder, [&](Books& books) {
        const BooksHeader& gpu = books.header();
        for (const Holder& holder : books.holders()) {
            Row row{gpu.uuid, gpu.name, gpu.capacity, gpu.index, holder, {}};
            if (timed)
                row.busy = time.total(row.uuid, holder.pid);
            rows.push_back(row);
        }
    });
    std::ranges::sort(rows, [](const Row& a, const Row& b) {
        return std::tie(a.index, a.uuid, a.holder.order, a.holder.pid) <
               std::tie(b.index, b.uuid, b.holder.order, b.holder.pid);
    });
    return rows;
}

std::vector<IndexedTurn> read_turns(const std::string& folder) {
    std::vector<IndexedTurn> turns;
    TimeReader time;
    if (!time.refresh(folder))
        return turns;
    std::map<std::string, int> index;
    each_book(folder, [&](const Books& books) { index[books.header().uuid] = books.header().index; });
    for (const Turn& turn : time.turns())
        turns.push_back({index[turn.uuid], turn});
    return turns;
}

}  // namespace cuslice::fake
