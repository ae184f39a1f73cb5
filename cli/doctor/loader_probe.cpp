// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/loader_probe.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <sstream>

#include "cli/gpus/ask_child.h"

namespace cuslice::cli::doctor {
namespace {

constexpr std::string_view kThere = "libcuslice.so is there\n", kElsewhere = "libcuslice.so is not there\n";
// Between what ld.so says and the child's own answer.
constexpr std::string_view kObjects = "the loaded objects are\n";

int append_object(dl_phdr_info* object, size_t, void* text) {
    const std::string_view path = object->dlpi_name;
    if (!path.empty())
        static_cast<std::string*>(text)->append(path).append("\n");
    return 0;
}

// Takes the list of objects from the end of `text`.
std::vector<std::string> take_objects(std::string& text) {
    std::vector<std::string> objects;
    const size_t at = text.rfind(kObjects);
    if (at == text.npos)
        return objects;
    std::istringstream lines(text.substr(at + kObjects.size()));
    for (std::string line; std::getline(lines, line);)
        objects.push_back(line);
    text.resize(at);
    return objects;
}

}  // namespace

LoaderAnswer ask_loader(const Installation& installation, const Environment& environment) {
    constexpr std::chrono::seconds kPatience{20};
    const Answer answer = ask_child(installation, environment, {kAskLoader, "preload"}, kPatience, true);
    if (!answer.failure.empty())
        return {false, answer.failure, {}};
    std::string words = answer.text;
    const bool there = words.ends_with(kThere);
    for (const std::string_view end : {kThere, kElsewhere})
        if (words.ends_with(end))
            words.resize(words.size() - end.size());
    std::vector<std::string> objects = take_objects(words);
    while (!words.empty() && words.back() == '\n')
        words.pop_back();
    std::replace(words.begin(), words.end(), '\n', ' ');
    return {there, words, std::move(objects)};
}

std::string answer_of_loader() {
    std::string answer(kObjects);
    ::dl_iterate_phdr(append_object, &answer);
    return answer.append(::dlsym(RTLD_DEFAULT, "cuslice_marker") != nullptr ? kThere : kElsewhere);
}

}  // namespace cuslice::cli::doctor
