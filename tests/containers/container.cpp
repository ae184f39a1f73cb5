// SPDX-License-Identifier: Apache-2.0
#include "tests/containers/container.h"
#include "tests/allowed.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "fake/books/books.h"
#include "tests/preload/machine.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

namespace fs = std::filesystem;

// Why no such container can be made here; empty: one can.
std::string obstacle(const Like& like) {
    const Container container(like);
    const Outcome outcome = run(joined(container.before(), container.command({"/bin/true"})), plain());
    if (outcome.exit_code == 0)
        return "";
    const Words lines = split_lines(outcome.err);
    return lines.empty() ? "exit code " + std::to_string(outcome.exit_code) : lines.back();
}

int parent_of(const fs::path& process) {
    const std::string text = read_text((process / "stat").string());
    const size_t name_end = text.rfind(')');
    return name_end == text.npos ? 0 : std::stoi(split_words(text.substr(name_end + 1)).at(1));
}

template <typename F>
void each_living(const std::string& folder, F f) {
    for (const auto& file : fs::directory_iterator(folder)) {
        fake::Books books;
        std::string error;
        if (!file.is_regular_file() || !books.open_existing(file.path().string(), error))
            continue;  // a lock file
        for (const fake::Holder& holder : books.holders())
            if (holder.live)
                f(holder);
    }
}

}  // namespace

std::string text_of(const Like& like) {
    std::string text = std::string(kTool) + ":";
    if (like.users)
        text += " users";
    if (like.read_only)
        text += " read-only";
    if (like.shm == Shm::small)
        text += " small /dev/shm";
    if (like.shm == Shm::none)
        text += " no /dev/shm";
    if (!like.proc)
        text += " no /proc";
    if (like.user != 0)
        text += " as user " + std::to_string(like.user);
    return text;
}

Words as_user(unsigned user) {
    if (user == 0)
        return {};
    const std::string number = std::to_string(user);
    return {"/usr/bin/setpriv", "--reuid", number, "--regid", number, "--clear-groups"};
}

bool can_make(const Like& like) {
    static std::map<std::string, std::string> known;
    const auto why_not = [](Like bare) {
        bare.writable.clear();
        const std::string text = text_of(bare);
        if (!known.contains(text))
            known[text] = obstacle(bare);
        return known[text];
    };
    if (like.user != 0 && (!can_be_other_users() || !can_let_others_in()))
        return false;
    const std::string why = why_not(like);
    if (why.empty())
        return true;
    skip("no such container can be made here (" + text_of(like) + "): " + why);
    return false;
}

std::vector<int> descendants(int pid) {
    std::vector<int> found{pid};
    std::map<int, std::vector<int>> children;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != name.npos)
            continue;
        children[parent_of(entry.path())].push_back(std::stoi(name));
    }
    for (size_t i = 0; i < found.size(); ++i)
        found.insert(found.end(), children[found[i]].begin(), children[found[i]].end());
    found.erase(found.begin());
    std::reverse(found.begin(), found.end());
    return found;
}

uint64_t held_by_all(const std::string& folder) {
    uint64_t sum = 0;
    each_living(folder, [&](const fake::Holder& holder) { sum += holder.used; });
    return sum;
}

uint64_t peak_of_all(const std::string& folder) {
    uint64_t sum = 0;
    each_living(folder, [&](const fake::Holder& holder) { sum += holder.peak; });
    return sum;
}

}  // namespace cuslice::tests
